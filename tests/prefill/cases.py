"""What the tests of the prefill methods share: inputs, a step on a rank, and a whole run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Contiguous, Interleaved, Layout, Striped, World, ZigZag
from ringlab.prefill import all_gather_attention, ring_attention
from tests import oracle
from tests.layouts.cases import Word

Attend = Callable[..., Tensor]

METHODS: list[Attend] = [ring_attention, all_gather_attention]
LAYOUTS: list[Layout] = [Contiguous(), ZigZag(), Striped(), Interleaved(3), Word((0, 1, 0, 2))]
SIZES = [1, 2, 3, 4, 5, 8]

every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: type(x).__name__)
every_size = pytest.mark.parametrize("size", SIZES)
masked_or_not = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


class Inputs(NamedTuple):
    """Tensors of the whole sequence: q and dout [B, Hq, L, D], k and v [B, Hkv, L, D]."""

    q: Tensor
    k: Tensor
    v: Tensor
    dout: Tensor


class Step(NamedTuple):
    """Results of a forward and a backward, of one rank or put together."""

    out: Tensor
    dq: Tensor
    dk: Tensor
    dv: Tensor


def inputs(
    length: int,
    *,
    batch: int = 2,
    heads: int = 6,
    kv_heads: int = 3,
    head_dim: int = 10,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> Inputs:
    """Draw normal numbers; no two sizes are equal by default."""
    draw = torch.Generator().manual_seed(seed)

    def normal(heads: int) -> Tensor:
        shape = (batch, heads, length, head_dim)
        return torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype)

    return Inputs(normal(heads), normal(kv_heads), normal(kv_heads), normal(heads))


def step(method: Attend, given: Inputs, layout: Layout, **options: Any) -> Step:
    """One forward and backward on a rank that holds its shard of `given`."""
    group = options.get("group")
    place = dist.get_rank(group), dist.get_world_size(group)
    q, k, v, dout = (layout.shard(x, *place) for x in given)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = method(*leaves, layout=layout, **options)
    out.backward(dout)
    return Step(out.detach(), *(x.grad for x in leaves))


def forward(method: Attend, given: Inputs, layout: Layout, **options: Any) -> Tensor:
    """A forward on a rank that holds its shard of `given`; nothing requires a gradient."""
    group = options.get("group")
    place = dist.get_rank(group), dist.get_world_size(group)
    return method(*(layout.shard(x, *place) for x in given[:3]), layout=layout, **options)


def whole(parts: Sequence[Step], layout: Layout) -> Step:
    """Put the results of all ranks in global order."""
    return Step(*(layout.unshard(list(tensors)) for tensors in zip(*parts, strict=True)))


def run(method: Attend, given: Inputs, size: int, layout: Layout, **options: Any) -> Step:
    """Run a step on virtual ranks and put the results together."""
    return whole(World(size).run(step, method, given, layout, **options), layout)


def assert_exact(found: Step, given: Inputs, *, causal: bool, scale: float | None = None) -> None:
    """Fail unless every number is that of one device in float64, to 1e-12."""
    exact = oracle.attention(*given, causal=causal, scale=scale)
    for name, tensor in found._asdict().items():
        torch.testing.assert_close(
            tensor, getattr(exact, name), rtol=1e-12, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}"
        )


def same_bits(left: Step, right: Step) -> bool:
    """Whether two results are equal to the last bit, signs of zeros included."""
    return all(
        torch.equal(a, b) and torch.equal(a.signbit(), b.signbit())
        for a, b in zip(left, right, strict=True)
    )
