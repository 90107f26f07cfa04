"""No rank outlives the process that started it, however that process ended.

On Linux the kernel kills a rank when its parent, the fork server, is gone; the fork server
ends when the notebook kernel is gone. Everywhere, a thread in each rank watches the
connection to the notebook kernel and ends the rank when it breaks.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable

POLL_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Let the system kill this process when `parent`, which forked it, ends.

    Only where the forking thread lives as long as its process: Linux sends the signal when
    that *thread* ends.
    """
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the request took effect
        os._exit(1)


def watch(control: socket.socket, parent: int, answer: Callable[[], None]) -> threading.Thread:
    """Start a thread that ends this process with its parents and answers their questions.

    Parameters
    ----------
    control : socket
        Closed by the parent, on purpose or because it was killed: this process then ends.
        A byte on it is a question.
    parent : int
        The process that forked this one.
    answer : callable
        Called for each question.
    """
    thread = threading.Thread(
        target=_watch, args=(control, parent, answer), name="ringlab-watch", daemon=True
    )
    thread.start()
    return thread


def _watch(control: socket.socket, parent: int, answer: Callable[[], None]) -> None:
    while True:
        readable, _, _ = select.select([control], [], [], POLL_SECONDS)
        if os.getppid() != parent:
            os._exit(1)
        if readable:
            if not control.recv(1):
                os._exit(1)
            answer()
