"""Causal ring attention on all devices: how much of the ideal it reaches with each layout.

The ideal is the time of one device for the whole sequence, divided by the number of devices.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu.blockwise import BOTH, FORWARD
from benchmarks.gpu.clock import reading
from benchmarks.gpu.scale import Scale
from ringlab import Contiguous, Striped, World, ZigZag, ring_attention
from ringlab.bench.readings import Phases, Reading, interleave, over_ranks
from ringlab.layout import Layout

LAYOUTS: tuple[Layout, ...] = (Contiguous(), ZigZag(), Striped())
ALONE = "one device"


def run(world: World, device: str, devices: int, scale: Scale) -> list[dict[str, Any]]:
    """Measure every layout in turns with one device that has the whole sequence.

    Returns
    -------
    list of dict
        For each layout and phase seconds, ideal seconds, and the share of the ideal.
    """

    def read(layout: Layout | None) -> Phases:
        return over_ranks(world.run(rank_reads, layout, device, scale))

    contestants = {type(x).__name__: lambda x=x: read(x) for x in LAYOUTS}
    contestants[ALONE] = lambda: read(None)
    readings = interleave(contestants, scale.rounds)
    alone = readings.pop(ALONE)
    return [
        _row(name, phase, _median(taken, phase), _median(alone, phase) / devices)
        for name, taken in readings.items()
        for phase in (FORWARD, BOTH)
    ]


def rank_reads(layout: Layout | None, device: str, scale: Scale) -> Phases:
    """One rank's readings of a layout; without one, rank 0 has all of it and the others wait."""
    size = dist.get_world_size()
    if layout is None:
        found = dict.fromkeys((FORWARD, BOTH), Reading(0.0, 0.0))
        if dist.get_rank() == 0:
            found = _phases(_sdpa, inputs(scale.tokens * size, device, scale), device, scale.steps)
        dist.barrier()
        return found

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ring_attention(q, k, v, layout=layout, causal=True, length=scale.tokens * size)

    given = inputs(scale.tokens, device, scale)
    return _phases(attend, given, device, scale.steps, together=True)


def _sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(
        q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1]
    )


def _phases(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor],
    given: tuple[Tensor, ...],
    device: str,
    steps: int,
    *,
    together: bool = False,
) -> Phases:
    *own, dout = given
    with torch.no_grad():
        forward = reading(lambda: attend(*own), device, steps, together=together)

    def both() -> tuple[Tensor, ...]:
        return torch.autograd.grad(attend(*own), own, dout)

    return {FORWARD: forward, BOTH: reading(both, device, steps, together=together)}


def inputs(tokens: int, device: str, scale: Scale) -> tuple[Tensor, ...]:
    """Make q, k, v and the gradient of the output, [1, H, tokens, D]."""
    kind = getattr(torch, scale.dtype)
    shapes = [
        (1, heads, tokens, scale.dim)
        for heads in (scale.heads, scale.kv_heads, scale.kv_heads, scale.heads)
    ]
    q, k, v, dout = (torch.randn(shape, dtype=kind, device=device) for shape in shapes)
    return *(x.requires_grad_() for x in (q, k, v)), dout


def _median(taken: list[Phases], phase: str) -> float:
    return statistics.median(one[phase].wall for one in taken)


def _row(layout: str, phase: str, seconds: float, ideal: float) -> dict[str, Any]:
    return {
        "layout": layout, "phase": phase, "s": seconds, "ideal_s": ideal, "share": ideal / seconds,
    }  # fmt: skip
