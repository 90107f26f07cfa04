"""Inputs that the tests of one rank share."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ringlab.numerics import AttentionState

# Kernels that run on any machine with a CPU, with the dtypes each takes.
ON_CPU = [
    ("cpu_flash", torch.float32),
    ("cpu_flash", torch.float64),
    ("cpu_flash", torch.bfloat16),
    ("cpu_flash", torch.float16),
    ("cpu_flash_float32", torch.bfloat16),
    ("cpu_flash_float32", torch.float16),
    ("reference", torch.float32),
    ("reference", torch.float64),
    ("reference", torch.bfloat16),
    ("reference", torch.float16),
]

# Of the largest value, how far a result may be from the float64 oracle: some roundings of
# the dtype in which the kernel multiplies.
TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
}


class Case(NamedTuple):
    """Operands of one block and the gradient of its output."""

    q: Tensor
    k: Tensor
    v: Tensor
    dout: Tensor


def case(
    *,
    batch: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    queries: int = 7,
    keys: int = 9,
    head_dim: int = 16,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Case:
    """Draw a block of normal numbers; no two sizes are equal by default."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype)

    q = normal(batch, heads, queries, head_dim)
    k, v = (normal(batch, kv_heads, keys, head_dim) for _ in range(2))
    return Case(q, k, v, normal(batch, heads, queries, head_dim))


def state(*rows: tuple[float, float], dtype: torch.dtype = torch.float64) -> AttentionState:
    """Make a state of one head whose rows are (out, lse), each out repeated over D = 3."""
    out = torch.tensor([[[[out] * 3 for out, _ in rows]]], dtype=dtype)
    lses = torch.tensor([[[lse for _, lse in rows]]], dtype=torch.float64)
    return AttentionState(out, lses)


def random_state(
    shape: tuple[int, int, int, int], seed: int, *, spread: float = 1.0
) -> AttentionState:
    """Draw a float64 state whose LSEs are spread over about ``spread``."""
    draw = torch.Generator().manual_seed(seed)
    out = torch.randn(shape, generator=draw, dtype=torch.float64)
    return AttentionState(
        out, torch.randn(shape[:-1], generator=draw, dtype=torch.float64) * spread
    )


def same(left: AttentionState, right: AttentionState) -> bool:
    """Whether two states are equal to the last bit, signs of zeros in the output included."""
    signs = torch.equal(left.out.signbit(), right.out.signbit())
    return signs and torch.equal(left.out, right.out) and torch.equal(left.lse, right.lse)


def assert_near(found: Tensor, exact: Tensor, tolerance: float) -> None:
    """Fail unless every number is within `tolerance` of the largest of `exact`."""
    assert found.shape == exact.shape
    finite = torch.isfinite(exact)
    assert torch.equal(found.double()[~finite], exact[~finite].double())
    if not finite.any():
        return
    size = max(exact[finite].abs().max().item(), 1.0)
    distance = (found.double() - exact.double())[finite].abs().max().item()
    assert distance <= tolerance * size, f"off by {distance:.2e} where {size:.2e} is the largest"


def naive_merge(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Merge two rows (out, lse) by the definition, in Python's floats and shifted exponents."""
    top = max(one[1], other[1])
    if top == -math.inf:
        return 0.0, -math.inf
    weights = [math.exp(lse - top) for _, lse in (one, other)]
    parts = [out * w if w else 0.0 for (out, _), w in zip((one, other), weights, strict=True)]
    return sum(parts) / sum(weights), top + math.log(sum(weights))
