"""A deadline for what runs in the main thread; Ctrl-C keeps its meaning."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLong(KeyboardInterrupt):
    """The deadline passed. It ends ranks just as an interrupt from the keyboard does."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in the block after some seconds.

    Parameters
    ----------
    seconds : float

    Notes
    -----
    It needs the main thread and a system with interval timers; elsewhere the block has no
    deadline, though the ranks of a world still have theirs.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "setitimer"):
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise TooLong(
            f"the answer was still running after {seconds:g} s, and was stopped. Is there a loop "
            "that never ends?"
        )

    before = signal.signal(signal.SIGALRM, expire)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, remaining, interval)
        signal.signal(signal.SIGALRM, before)
