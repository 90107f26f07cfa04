"""Running an answer: on virtual ranks, with a deadline, down to plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch.distributed as dist
from torch import Tensor

from ringlab.grade.deadline import TooLong, deadline
from ringlab.grade.observation import Failure, Observation
from ringlab.grade.plain import Plain, plain
from ringlab.meter import PeakBytes
from ringlab.timeline import Timeline
from ringlab.world import Deadlock, PeerLeft, RankFailed, World, WorldError

SECONDS = 10.0
"""How long one run of an answer may take; a rank may keep its turn for half as long."""


def on_ranks(
    answer: Callable[..., Any],
    arguments: Sequence[tuple[Plain, ...]],
    *,
    groups: Sequence[Sequence[int]] = (),
    order: Literal["stream", "host"] = "stream",
    seconds: float = SECONDS,
) -> Observation:
    """Call an answer on virtual ranks, one for each entry of `arguments`.

    Parameters
    ----------
    answer : callable
        The learner's function.
    arguments : sequence of tuple
        What each rank passes; every rank gets copies of its own.
    groups : sequence of sequence of int
        Disjoint groups of ranks. If given, each rank in one of them passes its process group as
        one more argument, the last; the others do not call the answer.
    order : {"stream", "host"}
        Whether NCCL's or gloo's rules hold.
    seconds : float
        Deadline of the run.

    Returns
    -------
    Observation
        Whatever the answer does: what it raises, a deadlock or the deadline is in `failure`.
    """
    world = World(len(arguments), order=order, timeout=0.5 * seconds)

    def on_rank() -> tuple[Plain, list[str], int]:
        rank = dist.get_rank()
        mine, given = (tuple(map(plain, arguments[rank])) for _ in range(2))
        extra = _own_group(groups, rank)
        if groups and not extra:
            return None, [], 0
        with PeakBytes() as meter:
            returned = answer(*mine, *extra)
        return plain(returned), _changed(given, mine, rank), meter.peak

    try:
        with deadline(seconds):
            each = world.run(on_rank)
    except (WorldError, TooLong) as error:
        return Observation((), world.timeline, failure_of(error))
    except Exception as error:  # whatever an answer raises where no rank catches it
        return Observation((), world.timeline, Failure(type(error).__name__, str(error)))
    return Observation(
        tuple(result for result, _, _ in each),
        world.timeline,
        changed=tuple(name for _, names, _ in each for name in names),
        peaks=tuple(peak for _, _, peak in each),
    )


def alone(answer: Callable[..., Any], *arguments: Plain, seconds: float = SECONDS) -> Observation:
    """Call an answer that does not communicate, once; its result is ``results[0]``.

    It runs as the only rank of a world, so that it has a deadline and leaves a timeline of what
    it computed.
    """
    return on_ranks(answer, [arguments], seconds=seconds)


def failure_of(error: WorldError | TooLong) -> Failure:
    """Describe what ended a run as plain data."""
    if isinstance(error, RankFailed):
        cause = error.__cause__
        kind = error.summary.split(":")[0] if cause is None else type(cause).__name__
        return Failure(kind, str(error), error.rank)
    if isinstance(error, (Deadlock, PeerLeft)):
        waits = tuple((w.rank, w.other, w.operation, w.site) for w in error.waits)
        cycle = tuple(error.cycle) if isinstance(error, Deadlock) else ()
        return Failure(type(error).__name__, str(error), None, cycle, waits)
    return Failure(type(error).__name__, str(error))


def nothing_happened(world_size: int, failure: Failure) -> Observation:
    """The observation of an answer that could not even be called."""
    return Observation((), Timeline(world_size), failure)


def _own_group(groups: Sequence[Sequence[int]], rank: int) -> tuple[Any, ...]:
    made = [(ranks, dist.new_group(list(ranks))) for ranks in groups]
    return tuple(group for ranks, group in made if rank in ranks)


def _changed(before: Any, after: Any, rank: int) -> list[str]:
    return [
        f"argument {number} on rank {rank}"
        for number, (old, new) in enumerate(zip(before, after, strict=True), 1)
        if isinstance(old, Tensor) and not _same(old, new)
    ]


def _same(old: Tensor, new: Tensor) -> bool:
    """Whether two tensors of one shape hold the same numbers, NaN included."""
    return bool(((old == new) | ((old != old) & (new != new))).all())
