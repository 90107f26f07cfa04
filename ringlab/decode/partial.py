"""Attention of the new tokens to one rank's part of the cache, and the sum of such parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ringlab.decode.ownership import position_of
from ringlab.layout import Interleaved
from ringlab.numerics import AttentionState, attend
from ringlab.timeline import region


class Tile(NamedTuple):
    """Rows of a rank that all new tokens attend to, under a mask or not."""

    rows: range
    masked: bool


def tiles(
    layout: Interleaved, rank: int, world_size: int, length: int, count: int
) -> tuple[Tile, ...]:
    """List what the last `count` tokens compute on the rows of a rank.

    The rows of a rank ascend in position. The first of the new tokens sees the first rows, and
    the others see at least these: one tile without a mask. Only the rows that the rank holds
    of the new tokens after the first, about ``(count - 1) / world_size``, need one.
    """
    seen, rows = (
        layout.local_length(rank, world_size, end) for end in (length - count + 1, length)
    )
    found = (Tile(range(seen), False), Tile(range(seen, rows), True))
    return tuple(tile for tile in found if tile.rows)


@dataclass(frozen=True)
class Query:
    """The new tokens, the last ones of the sequence, ready to attend to any part of it.

    Attributes
    ----------
    folded : Tensor
        [B, Hkv, G·n, D] with G = Hq / Hkv: the query heads that share a KV head are further
        queries of that head, so that K and V are read once for all of them.
    count : int
        New tokens, n.
    length : int
        Tokens of the whole sequence, the new ones included.
    layout : Interleaved
        Of the cache.
    world_size : int
    scale : float
    kernel : str or None
    """

    folded: Tensor
    count: int
    length: int
    layout: Interleaved
    world_size: int
    scale: float
    kernel: str | None

    def attend(self, k: Tensor, v: Tensor, rank: int) -> AttentionState:
        """Attend to the part of a rank, each new token to what it may see of it.

        Parameters
        ----------
        k, v : Tensor
            [B, Hkv, rows, D], all that the rank holds.
        rank : int

        Returns
        -------
        AttentionState
            out [B, Hkv, G·n, D]; empty where the rank holds nothing that a token sees.
        """
        state: AttentionState | None = None
        for tile in tiles(self.layout, rank, self.world_size, self.length, self.count):
            rows = slice(tile.rows.start, tile.rows.stop)
            mask = self._mask(rank, tile.rows) if tile.masked else None
            with region("attend"):
                part = attend(self.folded, k[:, :, rows], v[:, :, rows], mask=mask,
                              scale=self.scale, kernel=self.kernel)  # fmt: skip
            with region("merge"):
                state = part if state is None else state.merge_(part)
        if state is None:
            shape = self.folded.shape
            return AttentionState.empty(*shape, dtype=self.folded.dtype, device=self.folded.device)
        return state

    def _mask(self, rank: int, rows: range) -> Tensor:
        """Which of the rows each query may see, bool [G·n, rows]."""
        device = self.folded.device
        keys = torch.arange(rows.start, rows.stop, device=device)
        queries = torch.arange(self.length - self.count, self.length, device=device)
        allowed = queries[:, None] >= position_of(keys, self.layout, rank, self.world_size)
        return allowed.repeat(self.folded.shape[2] // self.count, 1)


def pack(state: AttentionState, into: Tensor) -> None:
    """Write a state into one vector: B·Hkv·G·n·D numbers of out, then B·Hkv·G·n of LSE."""
    numbers = state.out.numel()
    with region("copy"):
        into[:numbers].view(state.out.shape).copy_(state.out)
        into[numbers:].view(state.lse.shape).copy_(state.lse)


def combine(packed: Tensor, head_dim: int) -> Tensor:
    """Attention over all parts: the outs, weighted by the softmax of the LSEs over the parts.

    Parameters
    ----------
    packed : Tensor
        [W, queries·(D + 1)], what `pack` wrote, one row a part. At least one part of every
        query is not empty.
    head_dim : int
        D.

    Returns
    -------
    Tensor
        [queries, D], in the dtype of `packed`.
    """
    parts, size = packed.shape
    queries = size // (head_dim + 1)
    out = packed[:, : queries * head_dim].view(parts, queries, head_dim)
    with region("merge"):
        weights = torch.softmax(packed[:, queries * head_dim :], dim=0)
        return (out * weights.unsqueeze(-1)).sum(0)
