"""Zig-zag of pith-train: as ring-flash-attention's, with a merge that torch.compile has fused."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.published.hops import Hop
from benchmarks.published.kernels import Gradients, combine_, flash_forward
from benchmarks.published.variants.variant import Saved, Variant
from benchmarks.published.variants.zigzag_backward import zigzag_backward
from ringlab.layout import ZigZag


def forward(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Saved]:
    """Attend to K and V of every rank in turn."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own, half = (k, v), q.shape[2] // 2
    for step in range(size):
        hop = None if step + 1 == size else Hop((k, v))
        if step == 0:
            block, lse = flash_forward(q, k, v, True)
            out = block.to(torch.float32)
        elif step <= rank:
            block = flash_forward(q, k[:, :, :half], v[:, :, :half], False)
            combine_(out, lse, *block)
        else:
            block = flash_forward(q[:, :, half:], k, v, False)
            combine_(out[:, :, half:], lse[:, :, half:], *block)
        if hop is not None:
            k, v = hop.wait()
    result = out.to(q.dtype)
    return result, (q, *own, result, lse.clone())


def backward(dout: Tensor, saved: Saved) -> Gradients:
    """The shared backward; every second half is copied."""
    q, _, _, out, lse = saved
    half = q.shape[2] // 2
    late = [x[:, :, half:].contiguous() for x in (dout, q, out, lse)]
    return zigzag_backward(dout, saved, late)


VARIANT = Variant(
    "pith-train zig-zag",
    ZigZag(),
    True,
    forward,
    backward,
    "github.com/mlc-ai/pith-train at 597e35c5 (pull request 39), pithtrain/operators/"
    "ring_attention.py, read at 889a4088",
    "The fused merge counts as one kernel that reads the block and the state and writes the state.",
)
