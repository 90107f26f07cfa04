"""Stripes of ring-flash-attention: every block causal, half of them shifted by one token."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.published.hops import Hop
from benchmarks.published.kernels import Gradients, flash_backward, flash_forward
from benchmarks.published.variants import unfused
from benchmarks.published.variants.travelling import Travelling
from benchmarks.published.variants.variant import Saved, Variant
from ringlab.layout import Striped


def forward(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Saved]:
    """Attend to K and V of every rank in turn."""
    rank, size = dist.get_rank(), dist.get_world_size()
    k, v = own = k.clone(), v.clone()  # the packed K and V are made contiguous
    for step in range(size):
        hop = None if step + 1 == size else Hop((k, v))
        if step == 0:
            state = unfused.first(*flash_forward(q, k, v, True))
        elif step <= rank:
            state = unfused.merged(state, *flash_forward(q, k, v, True))
        else:
            block = flash_forward(q[:, :, 1:], k[:, :, :-1], v[:, :, :-1], True)
            unfused.merge_rows(state, 1, *block)
        if hop is not None:
            k, v = hop.wait()
    out, lse = unfused.final(state, q.dtype)
    return out, (q, *own, out, lse)


def backward(dout: Tensor, saved: Saved) -> Gradients:
    """Send K and V round again, and dK and dV behind them."""
    q, k, v, out, lse = saved
    rank, size = dist.get_rank(), dist.get_world_size()
    for step in range(size):
        hop = None if step + 1 == size else Hop((k, v))
        if step == 0:
            dq, dk, dv = flash_backward(dout, q, k, v, out, lse, True)
            dq = dq.to(torch.float32)
            travelling = Travelling(dk, dv)
        elif step <= rank:
            block, dk, dv = flash_backward(dout, q, k, v, out, lse, True)
            dq += block
            for total, part in zip(travelling.arrive(), (dk, dv), strict=True):
                total += part
        else:
            tail, tail_lse = [x[:, :, 1:] for x in (dout, q, out)], lse[:, :, 1:].contiguous()
            head = k[:, :, :-1], v[:, :, :-1]
            block, dk, dv = flash_backward(tail[0], tail[1], *head, tail[2], tail_lse, True)
            dq[:, :, 1:] += block
            for total, part in zip(travelling.arrive(), (dk, dv), strict=True):
                total[:, :, :-1] += part
        if hop is not None:
            k, v = hop.wait()
        travelling.send()
    return dq.to(q.dtype), *travelling.home(q.dtype)


VARIANT = Variant(
    "ring-flash-attention striped",
    Striped(),
    True,
    forward,
    backward,
    "github.com/zhuzilin/ring-flash-attention at 89962823, "
    "ring_flash_attn/stripe_flash_attn.py and utils.py",
    "As of zig-zag. Where a block is not shifted, dK and dV are added in place.",
)
