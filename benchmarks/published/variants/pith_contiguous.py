"""pith-train before its zig-zag: contiguous shards, every hop waited for, dK and dV sent last."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.published.hops import Hop
from benchmarks.published.kernels import Gradients, flash_backward, flash_forward
from benchmarks.published.variants.variant import Saved, Variant
from ringlab.layout import Contiguous


def _merged(state: list[Tensor], out: Tensor, lse: Tensor) -> list[Tensor]:
    """The merge, an operator for each sign of it."""
    largest = torch.maximum(state[1], lse)
    mine, other = torch.exp(state[1] - largest), torch.exp(lse - largest)
    a, b = mine.unsqueeze(-1), other.unsqueeze(-1)
    return [(a * state[0] + b * out) / (a + b), largest + torch.log(mine + other)]


def forward(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Saved]:
    """Attend, then exchange; K and V of every earlier rank are kept."""
    rank, size = dist.get_rank(), dist.get_world_size()
    lowest = torch.finfo(torch.float32).min
    state = [torch.zeros_like(q), torch.full(q.shape[:-1], lowest, device=q.device)]
    kept: list[Tensor] = []
    for step in range(size):
        if step <= rank:
            state = _merged(state, *flash_forward(q, k, v, step == 0))
            kept += [k, v]
        if step + 1 < size:
            k, v = Hop((k, v)).wait()
    out = state[0].to(q.dtype)
    return out, (q, out, state[1], *kept)


def backward(dout: Tensor, saved: Saved) -> Gradients:
    """Compute every block, then bring dK and dV home, distance by distance."""
    q, out, lse, *kept = saved
    rank, size = dist.get_rank(), dist.get_world_size()
    dq = torch.zeros_like(q)
    home = [torch.zeros_like(x) for x in kept[:2]]
    away: list[list[Tensor]] = [home]
    for step in range(rank + 1):
        k, v = kept[2 * step : 2 * step + 2]
        block, *parts = flash_backward(dout, q, k, v, out, lse, step == 0)
        dq += block
        if step:
            away.append(list(parts))
        else:
            for total, part in zip(home, parts, strict=True):
                total += part
    for distance in range(1, size):
        _bring_home(home, away, distance)
    return dq, home[0], home[1]


def _bring_home(home: list[Tensor], away: list[list[Tensor]], distance: int) -> None:
    """Send what belongs to the rank `distance` before, and add what comes from as far behind."""
    rank, size = dist.get_rank(), dist.get_world_size()
    messages, coming = [], []
    if rank - distance >= 0:
        messages += [dist.P2POp(dist.isend, x, rank - distance) for x in away[distance]]
    if rank + distance < size:
        coming = [torch.empty_like(x) for x in home]
        messages += [dist.P2POp(dist.irecv, x, rank + distance) for x in coming]
    if messages:
        for work in dist.batch_isend_irecv(messages):
            work.wait()
    for total, part in zip(home, coming, strict=False):
        total += part


VARIANT = Variant(
    "pith-train contiguous",
    Contiguous(),
    True,
    forward,
    backward,
    "github.com/mlc-ai/pith-train at c76a5916, pithtrain/operators/ring_attention.py",
    "Nothing that a price would see.",
)
