"""All-gather attention: every rank collects all of K and V, then computes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calls.entry import entry
from ringlab.calls.exchange import gather_blocks, reduce_scatter
from ringlab.layout import Contiguous, Layout
from ringlab.numerics import AttentionState
from ringlab.prefill.blocks import (
    GradientSum,
    Own,
    Views,
    attend_block,
    block_gradients,
    finished,
)
from ringlab.prefill.method import Gradients, attention
from ringlab.prefill.plan import Plan
from ringlab.prefill.support import PREFILL
from ringlab.timeline import region


@entry(PREFILL)
def all_gather_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    layout: Layout = Contiguous(),  # noqa: B008  frozen, no state
    causal: bool = False,
    scale: float | None = None,
    length: int | None = None,
    group: dist.ProcessGroup | None = None,
    kernel: str | None = None,
) -> Tensor:
    """Attention over a sharded sequence, by one all-gather of K and V.

    Takes the same arguments, returns the same numbers and moves the same bytes forward as
    `ring_attention`; it holds the K and V of all ranks at once, and moves them before it
    computes.

    Parameters
    ----------
    q : Tensor
        [B, Hq, L_rank, D]: the queries of this rank's tokens.
    k, v : Tensor
        [B, Hkv, L_rank, D]: keys and values of the same tokens.
    layout, causal, scale, length, group, kernel
        As in `ring_attention`.

    Returns
    -------
    Tensor
        [B, Hq, L_rank, D], in the dtype of q.

    Raises
    ------
    ValueError, TypeError, NotImplementedError
        As `ring_attention`.

    Notes
    -----
    With X the bytes of K and V of the longest shard, each rank sends (W-1)·X forward (a ring
    all-gather; shorter shards are padded). Backward it gathers K and V again, (W-1)·X, and
    reduce-scatters dK and dV in the accumulation dtype, (W-1)·Y, Y = 2·X for 16-bit inputs
    and Y = X otherwise. Tiles that a causal mask leaves empty are not computed, but their K
    and V are moved all the same.

    References
    ----------
    Llama Team, The Llama 3 Herd of Models, arXiv:2407.21783, section 3.3.2.
    """
    return attention(AllGather, q, k, v, layout=layout, causal=causal, scale=scale,
                     length=length, group=group, kernel=kernel)  # fmt: skip


class AllGather:
    """The all-gather as a prefill method."""

    name = "all_gather_attention"

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
        """One collective, then every block that is needed, the rank's own first."""
        state: AttentionState | None = None
        views = Views()
        blocks = gather_blocks(k, v, plan.lengths, plan.group)
        for step in range(plan.world_size):
            source = plan.source(step)
            block = (k, v) if step == 0 else _block(blocks, source, plan)
            state = attend_block(state, q, block, source, plan.tiles(source), plan, views)
        return finished(state, q)

    @staticmethod
    def backward(own: Own, plan: Plan) -> Gradients:
        """Gather again, compute every share of dK and dV, sum them where they belong."""
        kind = own.kind
        blocks = gather_blocks(own.k, own.v, plan.lengths, plan.group)
        shares = torch.empty(blocks.shape, dtype=kind, device=own.k.device)
        dq = GradientSum(own.q, kind)
        for step in range(1, plan.world_size):
            source = plan.source(step)
            share = block_gradients(dq, own, _block(blocks, source, plan), source, plan)
            _fill(shares[source], share)
        dk, dv = block_gradients(dq, own, (own.k, own.v), plan.rank, plan)
        if shares.numel():
            _fill(shares[plan.rank], (dk, dv))
            total = torch.empty(shares.shape[1:], dtype=kind, device=own.k.device)
            reduce_scatter(total, shares.flatten(0, 1), plan.group)
            return dq.tensor(), *total[:, :, :, : own.k.shape[2]]
        return dq.tensor(), dk.tensor(), dv.tensor()


def _block(blocks: Tensor, source: int, plan: Plan) -> Tensor:
    """The K and V of one rank, [2, B, Hkv, Ls, D]."""
    return blocks[source][:, :, :, : plan.lengths[source]]


def _fill(share: Tensor, parts: tuple[GradientSum, GradientSum]) -> None:
    """Write a rank's share of dK and dV into its place, [2, B, Hkv, Lmax, D]."""
    with region("copy"):
        for target, part in zip(share, parts, strict=True):
            if part.total is None:
                target.zero_()
            else:
                target[:, :, : part.total.shape[2]].copy_(part.total)
