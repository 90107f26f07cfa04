"""Arithmetic runs of token positions, in which a layout says what a rank owns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Run:
    """Positions ``start, start + step, ...``, ``count`` of them."""

    start: int
    step: int
    count: int

    @property
    def last(self) -> int:
        """The highest position of the run."""
        return self.start + self.step * (self.count - 1)


def chunk(index: int, chunks: int, length: int) -> Run:
    """Cut ``range(length)`` into chunks, the first ``length % chunks`` longer by one; give one."""
    size, longer = divmod(length, chunks)
    return Run(index * size + min(index, longer), 1, size + (index < longer))


def nonempty(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Drop the runs that hold no position."""
    return tuple(run for run in runs if run.count > 0)


def run_positions(runs: Sequence[Run], device: torch.device | str = "cpu") -> Tensor:
    """List the positions of runs, in their order: int64 ``[total count]``."""
    parts = [torch.arange(run.start, run.last + 1, run.step, device=device) for run in runs]
    if len(parts) == 1:
        return parts[0]
    return torch.cat(parts) if parts else torch.arange(0, device=device)


def joined(runs: Iterable[Run], length: int) -> tuple[Run, ...]:
    """Join runs that continue one another.

    Raises
    ------
    ValueError
        If the runs do not ascend, without overlap, inside ``range(length)``.
    """
    result: list[Run] = []
    for run in nonempty(runs):
        after = result[-1].last if result else -1
        if run.step < 1 or run.start <= after or run.last >= length:
            raise ValueError(
                f"{run} is out of place: runs ascend, without overlap, inside range({length})."
            )
        both = _join(result[-1], run) if result else None
        if both is None:
            result.append(run)
        else:
            result[-1] = both
    return tuple(result)


def _join(first: Run, second: Run) -> Run | None:
    """Both as one run, if the second continues the first; a run of one token fits any step."""
    step = second.start - first.last
    if (first.count > 1 and first.step != step) or (second.count > 1 and second.step != step):
        return None
    return Run(first.start, step, first.count + second.count)


def check_place(rank: int, world_size: int, length: int) -> None:
    """Refuse a rank outside its world, a world without ranks and a negative length."""
    for name, value in (("rank", rank), ("world_size", world_size), ("length", length)):
        if not isinstance(value, int):
            raise TypeError(f"{name} must be an int; got {value!r}.")
    if world_size < 1:
        raise ValueError(f"world_size is the number of ranks, 1 or more; got {world_size}.")
    if not 0 <= rank < world_size:
        raise ValueError(
            f"rank {rank} is not in a world of {world_size}; ranks are 0 to {world_size - 1}."
        )
    if length < 0:
        raise ValueError(f"length is a number of tokens, 0 or more; got {length}.")


def check_position(position: int, world_size: int, length: int) -> None:
    """Refuse a position outside the sequence."""
    check_place(0, world_size, length)
    if not 0 <= position < length:
        raise ValueError(
            f"position {position} is not in a sequence of {length} tokens; "
            f"positions are 0 up to, not including, {length}."
        )
