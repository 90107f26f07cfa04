"""A rank's queries on one rank's keys: the tiles of a block, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from ringlab.layout.tiles import Tile
from ringlab.numerics import AttentionState, attend, attend_backward
from ringlab.numerics.dtypes import accumulation_dtype
from ringlab.prefill.plan import Plan
from ringlab.timeline import region

T = TypeVar("T")

Block = Tensor | tuple[Tensor, Tensor]
"""The keys and the values of one rank, [B, Hkv, Ls, D] each, stacked or not."""


@dataclass(frozen=True)
class Own:
    """What the backward of a rank starts from: its own tensors, all blocks merged.

    Attributes
    ----------
    dout : Tensor
        [B, Hq, L, D], gradient of the output.
    q, out : Tensor
        [B, Hq, L, D].
    k, v : Tensor
        [B, Hkv, L, D].
    lse : Tensor
        [B, Hq, L], as the state keeps it.
    """

    dout: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    out: Tensor
    lse: Tensor

    @property
    def kind(self) -> torch.dtype:
        """The accumulation dtype, in which gradients are summed and travel."""
        return accumulation_dtype(self.q.dtype)


class Views:
    """Parts of tensors and states, each made once: a ring looks at the same ones at every step."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int, int], tuple[object, Any]] = {}

    def rows(self, x: Tensor, where: range) -> Tensor:
        """The rows `where` of [B, H, L, D], as a view."""
        if len(where) == x.shape[2]:
            return x
        return self._view(x, where, lambda: rows(x, where))

    def part(self, state: AttentionState, where: range) -> AttentionState:
        """The queries `where` of a state, which share memory with it."""
        if len(where) == state.lse.shape[2]:
            return state
        return self._view(state, where, lambda: state.rows(where.start, where.stop))

    def halves(self, block: Block) -> tuple[Tensor, Tensor]:
        """The keys and the values of a block."""
        if isinstance(block, tuple):
            return block
        return self._view(block, range(0), lambda: (block[0], block[1]))

    def _view(self, whole: object, where: range, make: Callable[[], T]) -> T:
        key = id(whole), where.start, where.stop
        made = self._made.get(key)
        if made is None:  # `whole` is kept too, so that nothing else gets its id
            made = self._made[key] = whole, make()
        view: T = made[1]
        return view


def attend_block(
    state: AttentionState | None,
    q: Tensor,
    block: Block,
    source: int,
    tiles: Sequence[Tile],
    plan: Plan,
    views: Views,
) -> AttentionState | None:
    """Attend to the keys of `source` and merge the result into `state`.

    Parameters
    ----------
    state : AttentionState or None
        [B, Hq, L, D], changed in place; None if no block has been computed yet.
    q : Tensor
        [B, Hq, L, D], the rank's own queries.
    block : Tensor or (Tensor, Tensor)
        The keys and values of `source`.
    source : int
    tiles : sequence of Tile
        What of it there is to compute, ``plan.tiles(source)``.
    plan : Plan
    views : Views
        Of the call so far.

    Returns
    -------
    AttentionState or None
    """
    k, v = views.halves(block)
    for tile in tiles:
        with region("attend"):
            part = attend(
                views.rows(q, tile.q),
                views.rows(k, tile.k),
                views.rows(v, tile.k),
                causal=tile.kind == "diagonal",
                mask=plan.mask(source, tile, q.device),
                scale=plan.scale,
                kernel=plan.kernel,
            )
        if state is None and len(tile.q) == q.shape[2]:
            state = part
            continue
        with region("merge"):
            if state is None:
                state = empty_state(q)
            views.part(state, tile.q).merge_(part)
    return state


def finished(state: AttentionState | None, q: Tensor) -> tuple[Tensor, Tensor]:
    """Return out in the dtype of `q`, and the LSE; zero and -inf if there was no block."""
    if state is None:
        state = empty_state(q)
    return state.out.to(q.dtype), state.lse


def empty_state(q: Tensor) -> AttentionState:
    """Attention of `q` to nothing."""
    batch, heads, length, dim = q.shape
    return AttentionState.empty(batch, heads, length, dim, dtype=q.dtype, device=q.device)


class GradientSum:
    """A gradient [B, H, L, D] that is the sum of the shares of tiles.

    The first share that covers every row becomes the sum, so that nothing is filled with
    zeros only to be added to.
    """

    def __init__(self, like: Tensor, kind: torch.dtype) -> None:
        self._like, self._kind = like, kind
        self.total: Tensor | None = None
        """None while it is zero."""

    def add(self, share: Tensor, where: range) -> None:
        """Add a share to the rows `where`; the share may be kept and changed."""
        if self.total is None and len(where) == self._like.shape[2]:
            self.total = share
        else:
            rows(self.tensor(), where).add_(share)

    def tensor(self) -> Tensor:
        """The sum so far."""
        if self.total is None:
            like = self._like
            self.total = torch.zeros(like.shape, dtype=self._kind, device=like.device)
        return self.total


def block_gradients(
    dq: GradientSum, own: Own, block: Block, source: int, plan: Plan
) -> tuple[GradientSum, GradientSum]:
    """Compute the gradients of one block.

    Parameters
    ----------
    dq : GradientSum
        [B, Hq, L, D]; the block's share is added.
    own : Own
    block : Tensor or (Tensor, Tensor)
        The keys and values of `source`.
    source : int
    plan : Plan

    Returns
    -------
    dk, dv : GradientSum
        [B, Hkv, Ls, D], this rank's share, in the accumulation dtype.
    """
    k, v = block
    dk, dv = GradientSum(k, own.kind), GradientSum(v, own.kind)
    for tile in plan.tiles(source):
        with region("attend"):
            shares = attend_backward(
                rows(own.dout, tile.q),
                rows(own.q, tile.q),
                rows(k, tile.k),
                rows(v, tile.k),
                rows(own.out, tile.q),
                own.lse[:, :, tile.q.start : tile.q.stop],
                causal=tile.kind == "diagonal",
                mask=plan.mask(source, tile, k.device),
                scale=plan.scale,
                kernel=plan.kernel,
            )
        with region("merge"):
            dq.add(shares[0], tile.q)
            dk.add(shares[1], tile.k)
            dv.add(shares[2], tile.k)
    return dk, dv


def rows(x: Tensor, where: range) -> Tensor:
    """The rows `where` of [B, H, L, D], as a view."""
    return x if len(where) == x.shape[2] else x[:, :, where.start : where.stop]
