"""The processes that a question started, wherever they hide in the tree; and their end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections import defaultdict

_PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 30.0
PAUSE = 0.002


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends; on Linux."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def of(pid: int) -> dict[int, int]:
    """Processes below `pid`, each with the bytes of memory that it has beside files.

    Pages that a fork still shares with its parent count in both. Empty where the system has no
    ``/proc``.
    """
    children: dict[int, list[int]] = defaultdict(list)
    ended: set[int] = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] in "ZX":
            ended.add(int(name))
        children[int(fields[1])].append(int(name))
    found: dict[int, int] = {}
    waiting = [pid]
    while waiting:
        for child in children[waiting.pop()]:
            waiting.append(child)
            if child not in ended:
                with contextlib.suppress(OSError):
                    found[child] = own_memory(str(child))
    return found


def own_memory(pid: str = "self") -> int:
    """Bytes of memory of a process beside files; 0 where the system has no ``/proc``."""
    if not os.path.isdir("/proc/self"):
        return 0
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        _, resident, shared, *_ = map(int, statm.read().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def end(first: int) -> None:
    """Kill the process `first`, its group, and all that is below the calling process.

    A look at the processes of a system takes a while, and misses some that start meanwhile. That
    none is left is certain when the calling process, which has adopted them all, has no child.
    """
    with contextlib.suppress(OSError):
        os.killpg(first, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(first, signal.SIGKILL)
    for _ in range(20):  # mostly that was all
        if reap():
            return
        time.sleep(PAUSE)
    until = time.monotonic() + PATIENCE
    while not reap() and time.monotonic() < until:
        left = of(os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped, none starts another
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        time.sleep(PAUSE)


def reap() -> bool:
    """Collect every child that has ended; whether no other is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False
