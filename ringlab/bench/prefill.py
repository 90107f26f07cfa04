"""Ring attention on ranks, and SDPA in one process, on the same problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ringlab.bench.parts import Parts
from ringlab.bench.readings import Phases, Stopwatch
from ringlab.layout import Contiguous, Layout, ZigZag
from ringlab.prefill import ring_attention

Meter = TypeVar("Meter", Stopwatch, Parts)


@dataclass(frozen=True)
class PrefillProblem:
    """Self-attention of a whole sequence, B = 1.

    Attributes
    ----------
    length : int
        Tokens.
    heads, dim : int
        Query and KV heads, and the width of each.
    dtype : torch.dtype
    causal : bool
        Zig-zag layout if so, contiguous otherwise.
    """

    length: int
    heads: int
    dim: int
    dtype: torch.dtype
    causal: bool

    @property
    def layout(self) -> Layout:
        """Which rank has which token."""
        return ZigZag() if self.causal else Contiguous()


@lru_cache(maxsize=1)
def _shards(problem: PrefillProblem, rank: int, world_size: int) -> tuple[Tensor, ...]:
    """Make q, k, v and the gradient of the output, [1, H, L_rank, D]: the same in every call."""
    generator = torch.Generator().manual_seed(0)
    shape = (1, problem.heads, problem.length, problem.dim)
    shards = []
    for _ in range(4):
        whole = torch.randn(shape, generator=generator).to(problem.dtype)
        shards.append(problem.layout.shard(whole, rank, world_size))
    for x in shards[:3]:
        x.requires_grad_()
    return tuple(shards)


def ring(problem: PrefillProblem) -> Phases:
    """One rank's program: forward and backward of ring attention, each begun together."""
    forward, backward = _ring(problem, Stopwatch)
    return {"forward": forward.reading, "backward": backward.reading}


def single(problem: PrefillProblem, kind: torch.dtype) -> Phases:
    """Run forward and backward of SDPA on the whole sequence, in one process.

    Parameters
    ----------
    problem : PrefillProblem
    kind : torch.dtype
        What SDPA computes in. A processor without a 16-bit matrix unit is faster in float32,
        the casts to it and back included.
    """
    q, k, v, dout = _fresh(problem)
    with Stopwatch() as forward:
        out = scaled_dot_product_attention(
            q.to(kind), k.to(kind), v.to(kind), is_causal=problem.causal
        ).to(problem.dtype)
    with Stopwatch() as backward:
        out.backward(dout)
    return {"forward": forward.reading, "backward": backward.reading}


def ring_in_parts(problem: PrefillProblem) -> dict[str, dict[str, float]]:
    """Run the ring once more and say on what each phase spends its CPU time."""
    forward, backward = _ring(problem, Parts)
    return {"forward": forward.seconds, "backward": backward.seconds}


def _ring(problem: PrefillProblem, meter: type[Meter]) -> tuple[Meter, Meter]:
    """Run the ring under two meters, one of its forward and one of its backward."""
    q, k, v, dout = _fresh(problem)
    dist.barrier()
    with meter() as forward:
        out = ring_attention(
            q, k, v, layout=problem.layout, causal=problem.causal, length=problem.length
        )
    dist.barrier()
    with meter() as backward:
        out.backward(dout)
    return forward, backward


def _fresh(problem: PrefillProblem) -> tuple[Tensor, ...]:
    shards = _shards(problem, dist.get_rank(), dist.get_world_size())
    for x in shards:
        x.grad = None
    return shards
