"""What every layout is and can do: where each token lives, and its global position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import torch
from torch import Tensor

from ringlab.layout.runs import Run, check_place, check_position, joined, run_positions
from ringlab.layout.shards import check_shards, dimension, global_order


class Layout(ABC):
    """Where each token of a sequence lives.

    A layout of one's own implements `runs` and nothing else. Instances are keys of
    caches: make the class a ``@dataclass(frozen=True)``.

    Notes
    -----
    Lengths need not divide by anything and a rank may own no token. Everything that
    depends on position (masks, tiles, rotary embedding, `unshard`) follows from the
    positions given here, so a message between ranks never has to carry any.
    """

    @abstractmethod
    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        """Describe the rank's tokens as arithmetic runs, in ascending order of position.

        Parameters
        ----------
        rank, world_size : int
            ``0 <= rank < world_size``.
        length : int
            Tokens in the whole sequence.

        Returns
        -------
        tuple of Run
            Every run lies wholly before the next. Over all ranks, each position in
            ``range(length)`` occurs exactly once.

        Raises
        ------
        ValueError
            If the rank is not in the world, or the length is negative.
        """

    def positions(
        self, rank: int, world_size: int, length: int, *, device: torch.device | str = "cpu"
    ) -> Tensor:
        """Give the global positions of the rank's tokens: int64 ``[local_length]``, ascending."""
        return run_positions(checked_runs(self, rank, world_size, length), device)

    def local_length(self, rank: int, world_size: int, length: int) -> int:
        """Count the rank's tokens."""
        return row_offsets(self, rank, world_size, length)[-1]

    def lengths(self, world_size: int, length: int) -> tuple[int, ...]:
        """Count every rank's tokens, in rank order.

        Raises
        ------
        ValueError
            If they do not add up to ``length`` (a layout of one's own may be wrong).
        """
        check_place(0, world_size, length)
        lengths = tuple(self.local_length(rank, world_size, length) for rank in range(world_size))
        if sum(lengths) != length:
            raise ValueError(
                f"{self} places {sum(lengths)} tokens of a sequence of {length} on "
                f"{world_size} ranks; runs() must give every position to exactly one rank."
            )
        return lengths

    def owner(self, position: int, world_size: int, length: int) -> int:
        """Find the rank that owns a global position.

        Raises
        ------
        ValueError
            If the position is outside ``range(length)``, or no rank owns it.
        """
        check_position(position, world_size, length)
        for rank in range(world_size):
            for run in checked_runs(self, rank, world_size, length):
                if run.start <= position <= run.last and (position - run.start) % run.step == 0:
                    return rank
        raise ValueError(
            f"{self} gives position {position} of {length} to none of {world_size} ranks; "
            "runs() must give every position to exactly one rank."
        )

    def shard(self, x: Tensor, rank: int, world_size: int, dim: int = -2) -> Tensor:
        """Copy the rank's part out of a global tensor.

        Parameters
        ----------
        x : Tensor
            Any shape and device; ``dim`` runs over the whole sequence.
        rank, world_size : int
            ``0 <= rank < world_size``.
        dim : int
            The sequence dimension: -2 for ``[B, H, L, D]``, -1 for token ids ``[B, L]``.

        Returns
        -------
        Tensor
            A contiguous copy, `local_length` long in ``dim``; differentiable.

        Raises
        ------
        ValueError
            If ``x`` has no such dimension or the rank is not in the world.
        """
        dim = dimension(x, dim)
        rows = self.positions(rank, world_size, x.shape[dim], device=x.device)
        return x.index_select(dim, rows)

    def unshard(self, shards: Sequence[Tensor], dim: int = -2) -> Tensor:
        """Put every rank's part back in global order: the inverse of `shard`.

        Parameters
        ----------
        shards : sequence of Tensor
            One a rank, in rank order; empty parts included.
        dim : int
            The sequence dimension.

        Returns
        -------
        Tensor
            The whole sequence, a contiguous copy; differentiable.

        Raises
        ------
        ValueError
            If the parts differ in anything but the length that this layout gives them.
        """
        if len(shards) == 0:
            raise ValueError("unshard got no parts; pass one tensor a rank, in rank order.")
        dim = dimension(shards[0], dim)
        length = sum(shard.shape[dim] for shard in shards if dim < shard.dim())
        check_shards(shards, dim, self.lengths(len(shards), length))
        positions = [self.positions(rank, len(shards), length) for rank in range(len(shards))]
        order = global_order(positions).to(shards[0].device)
        return torch.cat(list(shards), dim).index_select(dim, order)


def checked_runs(layout: Layout, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
    """Give a layout's runs, checked, with runs that continue one another joined; cached.

    Raises
    ------
    TypeError
        If ``layout`` is not an instance of a `Layout` that can be a key of a cache.
    ValueError
        If the rank is not in the world or the runs do not ascend in ``range(length)``.
    """
    if type(layout).__hash__ is None:
        _check_kind(layout)
        raise TypeError(f"{type(layout).__name__} must be hashable: use @dataclass(frozen=True).")
    return _checked_runs(layout, rank, world_size, length)


def _check_kind(layout: object) -> None:
    if not isinstance(layout, Layout):
        raise TypeError(f"layout is an instance of a Layout, such as ZigZag(); got {layout!r}.")


@lru_cache(maxsize=4096)
def _checked_runs(layout: Layout, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
    _check_kind(layout)
    check_place(rank, world_size, length)
    try:
        return joined(layout.runs(rank, world_size, length), length)
    except ValueError as error:
        place = f"rank {rank} of {world_size}, {length} tokens"
        raise ValueError(f"{layout}.runs() for {place}: {error}") from None


@lru_cache(maxsize=4096)
def row_offsets(layout: Layout, rank: int, world_size: int, length: int) -> tuple[int, ...]:
    """Give the local row at which each of the rank's runs starts, then the local length."""
    runs = checked_runs(layout, rank, world_size, length)
    return (0, *accumulate(run.count for run in runs))
