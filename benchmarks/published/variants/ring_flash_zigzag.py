"""Zig-zag of ring-flash-attention: kernels of half the size, an unfused merge, K and V apart."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from benchmarks.published.hops import Hop
from benchmarks.published.kernels import Gradients, flash_forward
from benchmarks.published.variants import unfused
from benchmarks.published.variants.variant import Saved, Variant
from benchmarks.published.variants.zigzag_backward import zigzag_backward
from ringlab.layout import ZigZag


def forward(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Saved]:
    """Attend to K and V of every rank in turn."""
    rank, size = dist.get_rank(), dist.get_world_size()
    k, v = own = k.clone(), v.clone()  # the packed K and V are made contiguous
    half = q.shape[2] // 2
    for step in range(size):
        last = step + 1 == size
        hop = None if last else Hop((k, v))
        if step == 0:
            state = unfused.first(*flash_forward(q, k, v, True))
        elif step <= rank:
            block = flash_forward(q, k[:, :, :half], v[:, :, :half], False)
            state = unfused.merged(state, *block)
        else:
            unfused.merge_rows(state, half, *flash_forward(q[:, :, half:], k, v, False))
        if hop is not None:
            k, v = hop.wait()
    out, lse = unfused.final(state, q.dtype)
    return out, (q, *own, out, lse)


def backward(dout: Tensor, saved: Saved) -> Gradients:
    """The shared backward; only the LSE of the second half is copied."""
    q, _, _, out, lse = saved
    half = q.shape[2] // 2
    late = [x[:, :, half:] for x in (dout, q, out)]
    return zigzag_backward(dout, saved, [*late, lse[:, :, half:].contiguous()])


VARIANT = Variant(
    "ring-flash-attention zig-zag",
    ZigZag(),
    True,
    forward,
    backward,
    "github.com/zhuzilin/ring-flash-attention at 89962823, "
    "ring_flash_attn/zigzag_ring_flash_attn.py and utils.py",
    "Its merge is a TorchScript function; here each of its operators is a kernel, as in the "
    "source. What autograd adds for the packed K and V is left out.",
)
