"""A rank as a thread that takes turns, and the exception that unwinds it."""

from __future__ import annotations

import ctypes
import sys
import threading
from enum import Enum
from types import FrameType
from typing import Any, Protocol

from ringlab.world.ambient import RandomState
from ringlab.world.source import is_library, site_of_thread


class Abandoned(BaseException):
    """Raised inside a rank to unwind it after the run has failed elsewhere."""


class State(Enum):
    """What a rank is doing."""

    READY = "ready"
    RUNNING = "running"
    POLLING = "polling"
    BLOCKED = "blocked"
    DONE = "done"


class Waitable(Protocol):
    """What a rank can block on."""

    @property
    def done(self) -> bool:
        """Whether the rank can go on."""
        ...


class Rank:
    """One rank's thread and its place in the order of turns.

    Parameters
    ----------
    number : int
    seed : int
        Seed of its random generators.

    Attributes
    ----------
    turn : Lock
        Held while the rank may not run; whoever hands over releases it.
    unwinds : int
        How often the rank has been told to unwind.
    lost : bool
        Whether it was given up: it did not react to being told so.
    """

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.state = State.READY
        self.waiting: Waitable | None = None
        self.random = RandomState(seed)
        self.turn = threading.Lock()
        self.turn.acquire()
        self.thread: threading.Thread | None = None
        self.result: Any = None
        self.unwinds = 0
        self.lost = False

    def can_run(self) -> bool:
        """Whether the rank could take the turn."""
        if self.state is State.BLOCKED:
            return self.waiting is not None and self.waiting.done
        return self.state is State.READY or self.state is State.POLLING

    def where(self) -> str:
        """What the rank is doing, for a person."""
        if self.state is State.DONE:
            return "has returned"
        if self.state is State.READY:
            return "has not started"
        if self.state is State.BLOCKED:
            over = self.waiting is not None and self.waiting.done
            return f"{'has its turn next after' if over else 'waits in'} {self.waiting}"
        ident = self.thread.ident if self.thread is not None else None
        return f"{self.state.value} at {site_of_thread(ident or 0)}"


def raise_in_thread(ident: int) -> None:
    """Raise :class:`Abandoned` in a thread as soon as it executes Python code."""
    _set_async_exception(ctypes.c_ulong(ident), ctypes.py_object(Abandoned))


def raise_at_next_line(frame: FrameType | None) -> None:
    """Raise :class:`Abandoned` at the next line of the program, for one that catches everything.

    A program that goes on after `except` is there in its handler, outside of the `try`, and
    so gets out of the loop around it.

    Parameters
    ----------
    frame : frame
        Where the calling thread stands.
    """

    def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            raise Abandoned
        return trace

    sys.settrace(lambda *_: None)  # without one for the thread, those of frames are not called
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            frame.f_trace = trace
        frame = frame.f_back


_set_async_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
