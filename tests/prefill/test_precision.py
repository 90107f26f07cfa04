"""Errors as ratios to one device in the same dtype, for every result on every rank."""

from __future__ import annotations

import statistics
from functools import lru_cache
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import World, ZigZag
from ringlab.prefill.all_gather import AllGather
from ringlab.prefill.blocks import Own
from ringlab.prefill.method import Method
from ringlab.prefill.plan import make_plan
from ringlab.prefill.ring import Ring
from tests import oracle
from tests.prefill.cases import Inputs, inputs

LAYOUT = ZigZag()
SEEDS = 8  # every sequence of the batch is drawn on its own


class Results(NamedTuple):
    """All that a rank computes: [B, H, L, D], and the LSE [B, H, L]."""

    out: Tensor
    lse: Tensor
    dq: Tensor
    dk: Tensor
    dv: Tensor


class Limit(NamedTuple):
    """What a kernel promises for inputs of a dtype."""

    kernel: str
    dtype: torch.dtype
    ratio: float


LIMITS = [
    Limit("cpu_flash", torch.float32, 1.3),
    Limit("reference", torch.float32, 1.3),
    Limit("cpu_flash", torch.bfloat16, 1.5),
    Limit("cpu_flash", torch.float16, 1.5),
    Limit("reference", torch.bfloat16, 1.05),
    Limit("reference", torch.float16, 1.05),
    Limit("cpu_flash_float32", torch.bfloat16, 1.05),
]
every_limit = pytest.mark.parametrize("limit", LIMITS, ids=str)


def problem(dtype: torch.dtype) -> Inputs:
    return inputs(192, batch=SEEDS, heads=4, kv_heads=2, head_dim=32, dtype=dtype)


@lru_cache(maxsize=4)
def baseline(dtype: torch.dtype, causal: bool) -> tuple[Results, Results]:
    """Float64, and what PyTorch gives on one device in the dtype, its kernel's LSE included."""
    given = problem(dtype)
    exact = oracle.attention(*given, causal=causal)
    single = oracle.one_device(*given, causal=causal)
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    k, v = (x.repeat_interleave(2, dim=1) for x in (given.k, given.v))
    _, lse = kernel(given.q, k, v, 0.0, causal)
    return (
        Results(exact.out, exact.lse, exact.dq, exact.dk, exact.dv),
        Results(single.out, lse, single.dq, single.dk, single.dv),
    )


def compute(method: Method, given: Inputs, causal: bool, kernel: str) -> Results:
    """Forward and backward of a method on a rank, with the LSE that it saves."""
    q, k, v, dout = (LAYOUT.shard(x, dist.get_rank(), dist.get_world_size()) for x in given)
    plan = make_plan(method.name, q, k, layout=LAYOUT, causal=causal, scale=None, kernel=kernel,
                     length=None, group=None, gradients=False)  # fmt: skip
    out, lse = method.forward(q, k, v, plan)
    grads = method.backward(Own(dout, q, k, v, out, lse), plan)
    return Results(out, lse, *(grad.to(q.dtype) for grad in grads))


def mean_error(found: Tensor, exact: Tensor) -> float:
    """Relative error in the Frobenius norm, its mean over the sequences of the batch."""
    return statistics.mean(oracle.error(x, y) for x, y in zip(found, exact, strict=True))


def ratios(method: Method, size: int, limit: Limit, *, causal: bool) -> dict[str, list[float]]:
    """For each result the error over that of one device: of the whole, then rank by rank."""
    parts = World(size).run(compute, method, problem(limit.dtype), causal, limit.kernel)
    found: dict[str, list[float]] = {}
    for name, mine, exact, single in zip(
        Results._fields, zip(*parts, strict=True), *baseline(limit.dtype, causal), strict=True
    ):
        compared = [(LAYOUT.unshard(list(mine), dim=2), exact, single)]
        for rank, part in enumerate(mine):
            shards = (LAYOUT.shard(x, rank, size, dim=2) for x in (exact, single))
            compared.append((part, *shards))
        found[name] = [mean_error(x, e) / mean_error(s, e) for x, e, s in compared]
    return found


@pytest.mark.parametrize("method", [Ring, AllGather])
@every_limit
def test_report_a3_a18_errors_are_near_those_of_one_device(method: Method, limit: Limit) -> None:
    for name, (whole, *by_rank) in ratios(method, 4, limit, causal=True).items():
        assert whole <= limit.ratio, f"{name} has {whole:.3f} times the error of one device"
        assert max(by_rank) <= limit.ratio, f"{name}, rank by rank: {by_rank}"


@pytest.mark.parametrize(
    ("method", "limit"),
    [(Ring, LIMITS[0]), (Ring, LIMITS[2]), (Ring, LIMITS[4]), (AllGather, LIMITS[2])],
    ids=str,
)
def test_report_a3_errors_do_not_grow_with_the_number_of_ranks(
    method: Method, limit: Limit
) -> None:
    # Without a mask every row is merged of as many blocks as there are ranks.
    few, many = (ratios(method, size, limit, causal=False) for size in (2, 32))
    for name in few:
        assert many[name][0] <= 1.1 * few[name][0], f"{name}: {few[name][0]} to {many[name][0]}"
        assert max(many[name]) <= limit.ratio
