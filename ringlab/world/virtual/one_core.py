"""Let threads that take turns share one core, where the system can be told so (Linux)."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

_PROCESSOR = 36
"""Place of the field in `stat`, counted from behind the name in parentheses: proc(5)."""


def last_core() -> int | None:
    """The core on which the calling thread runs; None where nobody can tell or choose."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    stat = Path(f"/proc/self/task/{threading.get_native_id()}/stat")
    try:
        core = int(stat.read_text(encoding="ascii").rpartition(")")[2].split()[_PROCESSOR])
    except (OSError, ValueError, IndexError):
        return None
    return core if core in os.sched_getaffinity(0) else None


def yield_rarely() -> None:
    """Let the calling thread run on when it wakes another, until it sleeps (Linux).

    Otherwise a rank that is woken interrupts the one that wakes it, only to find Python's
    interpreter lock still taken: two switches more at every turn.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def stay_on(core: int | None) -> None:
    """Keep the calling thread, and no other, on a core; None leaves it where it is.

    Handing over to a thread that sleeps on another core wakes that core twice: once to take
    the turn, and again to take Python's interpreter lock. On one core both are one switch.
    """
    if core is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
