"""What can go wrong in a world, as exceptions that a person can read.

Each kind of mistake has a page in ``docs/errors``: a program, its report and the fix.
"""

from __future__ import annotations

from typing import NamedTuple


class WorldError(RuntimeError):
    """Base of every error that a world raises about the program it ran.

    In a notebook only the message is shown: the frames of the library that noticed
    the error say nothing about its cause.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class RankFailed(WorldError):
    """A rank raised an exception, or its process died.

    Parameters
    ----------
    rank : int
        The rank that failed first.
    summary : str
        One line, for example ``"ValueError: bad shape"`` or ``"killed by SIGABRT"``.
    traceback : str
        That rank's traceback as text, empty if its process died without one.
    others : str
        What the other ranks were doing, one line a rank, or empty.

    Notes
    -----
    In the virtual world the rank's exception is also the ``__cause__``.
    """

    def __init__(self, rank: int, summary: str, traceback: str = "", others: str = "") -> None:
        self.rank = rank
        self.summary = summary
        self.traceback = traceback
        self.others = others
        parts = [f"rank {rank} failed: {summary}", traceback.rstrip(), others.rstrip()]
        super().__init__("\n\n".join(part for part in parts if part))

    def __reduce__(self) -> tuple[type[RankFailed], tuple[int, str, str, str]]:
        return type(self), (self.rank, self.summary, self.traceback, self.others)


class HungRank(WorldError):
    """A call met its deadline; the message says where every rank stood."""


class Wait(NamedTuple):
    """Who waits for whom: one arrow of a deadlock.

    Attributes
    ----------
    rank : int
        The rank that cannot go on, or whose operation cannot.
    other : int
        The rank that would have to do something first.
    operation : str
        What `rank` issued, as in ``"send to rank 1"``.
    site : str
        The line that issued it, as ``file:line in function``.
    """

    rank: int
    other: int
    operation: str
    site: str


class Deadlock(WorldError):
    """Ranks wait for one another in a cycle, so none of them can ever go on.

    Attributes
    ----------
    cycle : tuple of int
        The ranks of the cycle: each waits for the next, the last for the first.
    waits : tuple of Wait
        The arrows of the cycle, in its order; then those of ranks that wait for it from outside.
    """

    cycle: tuple[int, ...] = ()
    waits: tuple[Wait, ...] = ()


class PeerLeft(WorldError):
    """A rank waits for a rank that has already returned.

    Attributes
    ----------
    waits : tuple of Wait
        The way to the rank that left, which is the last arrow's `other`.
    """

    waits: tuple[Wait, ...] = ()


class MessageMismatch(WorldError):
    """The two ends of an operation do not agree on shape, dtype or kind."""


class UnmatchedOperation(WorldError):
    """A rank returned although an operation it issued never found its partner."""


class UnwaitedHandle(WorldError):
    """A rank returned without waiting for an operation it issued."""


class BadCall(WorldError):
    """A call of ``torch.distributed`` that is wrong whatever the other ranks do."""


class BufferHazard(WorldError):
    """A buffer was touched while an operation that had not been waited for used it.

    Attributes
    ----------
    rank : int
        The rank that touched it.
    operation : str
        What used it, as in ``"recv from rank 0"``.
    issued, touched : str
        The lines that began the operation and that touched the buffer, as
        ``file:line in function``.
    """

    rank: int = -1
    operation: str = ""
    issued: str = ""
    touched: str = ""
