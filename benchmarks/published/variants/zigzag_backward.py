"""The zig-zag backward that ring-flash-attention and pith-train share."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.published.hops import Hop
from benchmarks.published.kernels import Gradients, flash_backward
from benchmarks.published.variants.travelling import Travelling
from benchmarks.published.variants.variant import Saved


def zigzag_backward(dout: Tensor, saved: Saved, late: list[Tensor]) -> Gradients:
    """Send K and V round again, and dK and dV behind them.

    Parameters
    ----------
    dout : Tensor
    saved : tuple of Tensor
        q, k, v, out and LSE.
    late : list of Tensor
        The second halves of dout, q, out and LSE, as the kernel is to read them.
    """
    q, k, v, out, lse = saved
    rank, size = dist.get_rank(), dist.get_world_size()
    half = q.shape[2] // 2
    for step in range(size):
        hop = None if step + 1 == size else Hop((k, v))
        if step == 0:
            dq, dk, dv = flash_backward(dout, q, k, v, out, lse, True)
            dq = dq.to(torch.float32)
            travelling = Travelling(dk, dv)
        elif step <= rank:
            early = k[:, :, :half], v[:, :, :half]
            block, dk, dv = flash_backward(dout, q, *early, out, lse, False)
            dq += block
            for total, part in zip(travelling.arrive(), (dk, dv), strict=True):
                total[:, :, :half] += part
        else:
            block, dk, dv = flash_backward(late[0], late[1], k, v, late[2], late[3], False)
            dq[:, :, half:] += block
            for total, part in zip(travelling.arrive(), (dk, dv), strict=True):
                total += part
        if hop is not None:
            k, v = hop.wait()
        travelling.send()
    return dq.to(q.dtype), *travelling.home(q.dtype)
