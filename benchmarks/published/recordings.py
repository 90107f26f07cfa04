"""Recordings of programs on meta tensors, and how long their phases take on a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.published.kernels import flash_backward, flash_forward
from benchmarks.published.variants import Variant
from ringlab import World
from ringlab.layout import Layout
from ringlab.machine import Machine
from ringlab.prefill import ring_attention
from ringlab.price import price
from ringlab.timeline import Event, Timeline

REPEATS = 3
"""How often a program is run in a row; the last time counts, as in a benchmark's loop."""

Step = Callable[[Tensor, Tensor, Tensor], Callable[[Tensor], object]]
"""A forward, which gives a backward."""


@dataclass(frozen=True)
class Problem:
    """Sizes of the attention of a whole sequence, in bfloat16."""

    ranks: int
    tokens: int
    batch: int
    heads: int
    kv_heads: int
    head_dim: int

    def local(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q, k, v and dout of a rank, without data; every rank has as many tokens."""
        q, k, v, dout = (
            torch.empty(
                self.batch, heads, self.tokens // self.ranks, self.head_dim,
                dtype=torch.bfloat16, device="meta",
            )
            for heads in (self.heads, self.kv_heads, self.kv_heads, self.heads)
        )  # fmt: skip
        return q, k, v, dout


@dataclass(frozen=True)
class Phases:
    """Seconds of rank 0 in the last repetition."""

    forward: float
    backward: float

    @property
    def both(self) -> float:
        """Forward and backward."""
        return self.forward + self.backward


def of_variant(variant: Variant) -> Step:
    """The steps of a published program."""

    def step(q: Tensor, k: Tensor, v: Tensor) -> Callable[[Tensor], object]:
        _, saved = variant.forward(q, k, v)
        return lambda dout: variant.backward(dout, saved)

    return step


def of_ringlab(layout: Layout, causal: bool) -> Step:
    """The steps of `ringlab.ring_attention`."""

    def step(q: Tensor, k: Tensor, v: Tensor) -> Callable[[Tensor], object]:
        length = q.shape[2] * dist.get_world_size()
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        out = ring_attention(*leaves, layout=layout, causal=causal, length=length)
        return out.backward

    return step


def of_kernel(causal: bool) -> Step:
    """One kernel over the whole sequence."""

    def step(q: Tensor, k: Tensor, v: Tensor) -> Callable[[Tensor], object]:
        out, lse = flash_forward(q, k, v, causal)
        return lambda dout: flash_backward(dout, q, k, v, out, lse, causal)

    return step


def forward_seconds(step: Step, problem: Problem, machine: Machine) -> float:
    """Time a forward in a loop of forwards."""
    whole = price(_record(step, problem, ["forward"] * REPEATS), machine)
    events = _of_first_rank(whole)
    return _end(events, len(events)) - _end(events, len(events) * (REPEATS - 1) // REPEATS)


def phase_seconds(step: Step, problem: Problem, machine: Machine) -> Phases:
    """Time forward and backward in a loop of both."""
    loop = ["forward", "backward"] * REPEATS
    until = [len(_of_first_rank(_record(step, problem, loop[: len(loop) - n]))) for n in (2, 1)]
    events = _of_first_rank(price(_record(step, problem, loop), machine))
    begin, middle, end = (_end(events, n) for n in (*until, len(events)))
    return Phases(middle - begin, end - middle)


def _record(step: Step, problem: Problem, phases: list[str]) -> Timeline:
    with World(problem.ranks, timeout=600.0) as world:
        world.run(_program, step, problem, phases)
        return world.timeline


def _program(step: Step, problem: Problem, phases: list[str]) -> None:
    q, k, v, dout = problem.local()
    for phase in phases:
        if phase == "forward":
            backward = step(q, k, v)
        else:
            backward(dout)


def _of_first_rank(timeline: Timeline) -> list[Event]:
    return [event for event in timeline.events if event.rank == 0]


def _end(events: list[Event], count: int) -> float:
    """When the stream of a rank has computed, or waited for, the first events."""
    ends = [e.end for e in events[:count] if e.kind in ("compute", "wait") and e.end is not None]
    return max(ends, default=0.0)


def kernel_seconds(problem: Problem, causal: bool, machine: Machine) -> Phases:
    """Time one kernel on one device over the tokens of one rank."""
    alone = Problem(1, problem.tokens // problem.ranks, problem.batch, problem.heads,
                    problem.kv_heads, problem.head_dim)  # fmt: skip
    return phase_seconds(of_kernel(causal), alone, machine)
