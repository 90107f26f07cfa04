"""What a run that went wrong tells a person."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterable, Sequence
from typing import TypeVar

from ringlab.world.errors import HungRank, RankFailed, UnmatchedOperation, UnwaitedHandle
from ringlab.world.source import is_library
from ringlab.world.virtual.crew import TurnExpired
from ringlab.world.virtual.operations import Operation
from ringlab.world.virtual.turns import Rank, State

T = TypeVar("T")

SHOWN = 16
"""How many ranks or operations a report lists before it only counts."""


def rank_failed(rank: int, error: BaseException, ranks: Sequence[Rank]) -> RankFailed:
    """Report the exception of a rank, with what the others were doing."""
    trace = traceback.TracebackException.from_exception(error)
    _leave_out_library(trace, set())
    lines = trace.format() if trace.stack else trace.format_exception_only()
    text = "".join(lines).replace("Traceback", f"Traceback of rank {rank}", 1)
    others = [
        f"  rank {other.number}: {other.where()}"
        for other in ranks
        if other.number != rank and other.state is State.BLOCKED
    ]
    said = str(trace).strip().splitlines()
    summary = ": ".join([type(error).__name__, *said[:1]])
    meanwhile = "\n".join(["Meanwhile:", *_first(others)]) if others else ""
    failure = RankFailed(rank, summary, text, meanwhile)
    failure.__cause__ = error
    return failure


def _leave_out_library(trace: traceback.TracebackException | None, seen: set[int]) -> None:
    """Keep the frames of the program."""
    if trace is None or id(trace) in seen:
        return
    seen.add(id(trace))
    own = [frame for frame in trace.stack if not is_library(frame.filename)]
    trace.stack = traceback.StackSummary.from_list(own)
    _leave_out_library(trace.__cause__, seen)
    _leave_out_library(trace.__context__, seen)


def turn_expired(expired: TurnExpired, timeout: float) -> HungRank:
    """Report a rank that kept the turn beyond the deadline."""
    return HungRank(
        f"rank {expired.rank} kept the turn for more than {timeout:g} s without calling into the "
        "world (a sleep, a lock, an endless loop?):\n" + "\n".join(_first(expired.where))
    )


def check_leftovers(operations: Iterable[Operation]) -> None:
    """Refuse a program that ends with operations that nobody matched or waited for.

    Raises
    ------
    UnmatchedOperation, UnwaitedHandle
    """
    left = sorted(operations, key=lambda op: (op.rank, op.serial))
    unmatched = [f"  rank {op.rank}: {op}" for op in left if not op.matched]
    if unmatched:
        raise UnmatchedOperation(
            "the program is over, and these operations never met their other end:\n"
            + "\n".join(_first(unmatched))
            + "\nGloo would deliver such a message to the next receive from that rank, or lose it; "
            "NCCL would hang later. Make sends and receives pair up, and let all members of a "
            "group make each of its collective calls."
        )
    unwaited = [f"  rank {op.rank}: {op}" for op in left]
    if unwaited:
        raise UnwaitedHandle(
            "these operations were issued and never waited for:\n"
            + "\n".join(_first(unwaited))
            + "\nKeep what isend, irecv, batch_isend_irecv and async_op=True return, and call "
            "wait() on each: until then the data may not have arrived."
        )


def not_lazy(result: T) -> T:
    """Refuse a result whose code has not run yet.

    Raises
    ------
    TypeError
    """
    if inspect.isgenerator(result) or inspect.iscoroutine(result):
        result.close()
        kind = "generator" if inspect.isgenerator(result) else "coroutine"
        raise TypeError(
            f"the function returned a {kind}, whose code would run after the ranks have ended. "
            "Return its values, for example list(...)."
        )
    return result


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN
    return list(lines) if more <= 0 else [*lines[:SHOWN], f"  ... and {more} more"]
