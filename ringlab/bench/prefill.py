"""Ring attention on ranks, and SDPA in one process, on the same problem."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ringlab.bench.parts import Parts
from ringlab.bench.readings import Phases
from ringlab.layout import Contiguous, Layout, ZigZag
from ringlab.prefill import ring_attention


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
    q, k, v, dout = _fresh(problem)
    dist.barrier()
    with Parts() as forward:
        out = ring_attention(
            q, k, v, layout=problem.layout, causal=problem.causal, length=problem.length
        )
    dist.barrier()
    with Parts() as backward:
        out.backward(dout)
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
    with Parts(time.process_time) as forward:
        out = scaled_dot_product_attention(
            q.to(kind), k.to(kind), v.to(kind), is_causal=problem.causal
        ).to(problem.dtype)
    with Parts(time.process_time) as backward:
        out.backward(dout)
    return {"forward": forward.reading, "backward": backward.reading}


def _fresh(problem: PrefillProblem) -> tuple[Tensor, ...]:
    shards = _shards(problem, dist.get_rank(), dist.get_world_size())
    for x in shards:
        x.grad = None
    return shards
