"""Who holds which tokens and which block goes where: what all ranks must agree on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calls.group import resolve_group
from ringlab.calls.notes import fingerprint
from ringlab.layout import Layout
from ringlab.layout.tiles import Tile, last_hop, tile_mask, tiles
from ringlab.numerics.kernels import choose
from ringlab.prefill.agreement import Note, agree


@dataclass(frozen=True)
class Plan:
    """One call's shape, seen from one rank.

    Attributes
    ----------
    name : str
        The function that was called.
    layout : Layout
    causal : bool
    scale : float
        Factor on the scores.
    kernel : str or None
    group : ProcessGroup
    rank, world_size : int
        In the group.
    length : int
        Tokens of the whole sequence.
    lengths : tuple of int
        Tokens on each rank.
    last_hops : tuple of int
        How many hops each rank's block makes before nobody further on needs it.
    """

    name: str
    layout: Layout
    causal: bool
    scale: float
    kernel: str | None
    group: dist.ProcessGroup
    rank: int
    world_size: int
    length: int
    lengths: tuple[int, ...]
    last_hops: tuple[int, ...]

    def neighbour(self, step: int) -> int:
        """Group rank `step` places further on in the ring."""
        return (self.rank + step) % self.world_size

    def source(self, step: int) -> int:
        """The rank whose block this rank works on at `step`: step 0 is its own."""
        return (self.rank - step) % self.world_size

    def tiles(self, source: int) -> tuple[Tile, ...]:
        """What this rank's queries compute on the keys of `source`."""
        return self._tiles(self.rank, source)

    def _tiles(self, rank: int, source: int) -> tuple[Tile, ...]:
        return tiles(self.layout, rank, source, self.world_size, self.length, causal=self.causal)

    def mask(self, source: int, tile: Tile, device: torch.device) -> Tensor | None:
        """The boolean mask of a ``"mask"`` tile, on `device`; None for other tiles."""
        if tile.kind != "mask":
            return None
        return tile_mask(
            self.layout, self.rank, source, self.world_size, self.length, tile, device=device
        )

    def moves(self, source: int, step: int) -> bool:
        """Whether the block of `source` goes on to the next rank at `step`."""
        return step < self.last_hops[source]

    def has_masks(self) -> bool:
        """Whether any rank computes a tile under a mask."""
        ranks = range(self.world_size)
        return self.causal and any(
            tile.kind == "mask" for rank in ranks for source in ranks
            for tile in self._tiles(rank, source)
        )  # fmt: skip


def make_plan(
    name: str,
    q: Tensor,
    k: Tensor,
    *,
    layout: Layout,
    causal: bool,
    scale: float | None,
    kernel: str | None,
    length: int | None,
    group: dist.ProcessGroup | None,
    gradients: bool,
) -> Plan:
    """Settle what a call computes; without `length`, ask the other ranks.

    Raises
    ------
    RuntimeError
        If there is no process group.
    ValueError
        If this rank's tokens do not fit the layout and length, or, on every rank alike, if
        the ranks do not agree or the kernel cannot compute the tiles of the layout.
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"{name}: layout is an instance of a Layout, as ZigZag(); got {layout!r}.")
    group = resolve_group(name, group)
    rank, world_size = group.rank(), group.size()
    factor = 1.0 / math.sqrt(q.shape[3]) if scale is None else float(scale)
    if length is None:
        note = Note(q.shape[2], q.shape[0], q.shape[1], k.shape[1], q.shape[3], q.dtype, kernel,
                    causal, gradients, factor, fingerprint(layout))  # fmt: skip
        held = agree(name, note, layout, group, q.device)
        length = sum(held)
    else:
        held = ()
    lengths = layout.lengths(world_size, length)
    _check_lengths(name, layout, rank, held, q.shape[2], lengths)
    hops = _last_hops(layout, world_size, length, causal)
    plan = Plan(name, layout, causal, factor, kernel, group, rank, world_size, length, lengths,
                hops)  # fmt: skip
    if kernel is not None and not q.is_meta:
        _check_masks(kernel, q, k, plan)
    return plan


def _check_masks(kernel: str, q: Tensor, k: Tensor, plan: Plan) -> None:
    """Refuse a kernel that takes no mask, on every rank, if any rank needs one."""
    try:
        choose(kernel, q, k, False, True)
    except ValueError:
        if plan.has_masks():  # asked last: it plans the tiles of all pairs of ranks
            raise


@lru_cache(maxsize=64)
def _last_hops(layout: Layout, world_size: int, length: int, causal: bool) -> tuple[int, ...]:
    ranks = range(world_size)
    return tuple(last_hop(layout, rank, world_size, length, causal=causal) for rank in ranks)


def _check_lengths(
    name: str, layout: Layout, rank: int, held: tuple[int, ...], own: int, lengths: tuple[int, ...]
) -> None:
    """Refuse tokens that the layout does not give; `held` is what all ranks told, if they did."""
    rule = f"{layout} of length {sum(lengths)} over {len(lengths)} ranks"
    if held and held != lengths:
        raise ValueError(
            f"{name}: the ranks hold {list(held)} tokens, but {rule} gives {list(lengths)}. Shard "
            "with layout.shard(x, rank, world_size)."
        )
    if own != lengths[rank]:
        raise ValueError(
            f"{name}: rank {rank} holds {own} tokens, but {rule} gives it {lengths[rank]}. Shard "
            "with layout.shard(x, rank, world_size), or pass the true length."
        )
