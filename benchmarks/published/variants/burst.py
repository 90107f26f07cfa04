"""BurstAttention: no mask, and a backward that sends Q, dO, LSE and delta round, and dQ after."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.published.hops import Hop
from benchmarks.published.kernels import Gradients, flash_backward_by_delta, flash_forward
from benchmarks.published.variants.variant import Saved, Variant
from ringlab.layout import Contiguous


def _merged(o: Tensor, lse: Tensor, block: Tensor, block_lse: Tensor) -> tuple[Tensor, Tensor]:
    """The merge, an operator for each sign of it; `lse` is [B, H, L, 1]."""
    block, block_lse = block.to(torch.float32), block_lse.unsqueeze(-1)
    new = lse + torch.log(1 + torch.exp(block_lse - lse))
    return torch.exp(lse - new) * o + torch.exp(block_lse - new) * block, new


def forward(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Saved]:
    """Attend to K and V of every rank in turn, receiving into two pairs of buffers."""
    size = dist.get_world_size()
    own = k.clone(), v.clone()
    pair, free = [k, v], [torch.zeros_like(k), torch.zeros_like(v)]
    for step in range(size):
        hop = None if step + 1 == size else Hop(pair, free)
        block = flash_forward(q, pair[0], pair[1], False)
        if step == 0:
            o, lse = block[0].to(torch.float32), block[1].unsqueeze(-1)
        else:
            o, lse = _merged(o, lse, *block)
        if hop is not None:
            pair, free = hop.wait(), pair
            if step == 0:  # the first pair is the caller's: never received into
                free = [torch.zeros_like(k), torch.zeros_like(v)]
    out, lse = o.to(q.dtype), lse.squeeze(-1)
    return out, (q, *own, out.clone(), lse)


def backward(dout: Tensor, saved: Saved) -> Gradients:
    """Keep K, V, dK and dV at home; what belongs to the queries goes round."""
    q, k, v, out, lse = saved
    size = dist.get_world_size()
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    delta = (out * dout).to(torch.float32).sum(-1)
    guests = [delta, dout, q, lse]
    free = [torch.empty_like(x) for x in guests]
    for step in range(size):
        reading = None if step + 1 == size else Hop(guests, free)
        writing = Hop([dq]) if step > 0 else None
        delta, dout, q, lse = guests
        parts = flash_backward_by_delta(dout, q, k, v, delta, lse)
        if reading is not None:
            guests, free = reading.wait(), [torch.empty_like(x) for x in guests]
        if writing is not None:
            (dq,) = writing.wait()
        for total, part in zip((dq, dk, dv), parts, strict=True):
            total += part
    (dq,) = Hop([dq]).wait()
    return dq, dk, dv


VARIANT = Variant(
    "BurstAttention",
    Contiguous(),
    False,
    forward,
    backward,
    "github.com/MayDomine/Burst-Attention at b088c554, burst_attn/burst_attn_interface.py "
    "(OpBurstAttn, flash='cuda', optimize_bwd_comm=True), burst_utils.py and comm.py",
    "The source of a hop is never received into, which costs an allocation and no time. The "
    "published table does not say whether its backward sent delta or the output; here delta.",
)
