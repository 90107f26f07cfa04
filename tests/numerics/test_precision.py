"""Errors of attention computed in blocks, as ratios to one device in the same dtype."""

from __future__ import annotations

import statistics

import pytest
import torch
from torch import Tensor

from ringlab.numerics import AttentionState, attend, attend_backward
from tests import oracle
from tests.numerics.cases import Case, case

SEEDS = range(8)
WIDE_PARTIALS, NARROW_PARTIALS, FLOAT32 = 1.05, 1.5, 1.3
LIMITS = [
    ("reference", torch.bfloat16, WIDE_PARTIALS),
    ("reference", torch.float16, WIDE_PARTIALS),
    ("cpu_flash_float32", torch.bfloat16, WIDE_PARTIALS),
    ("cpu_flash_float32", torch.float16, WIDE_PARTIALS),
    ("cpu_flash", torch.bfloat16, NARROW_PARTIALS),
    ("cpu_flash", torch.float16, NARROW_PARTIALS),
    ("cpu_flash", torch.float32, FLOAT32),
    ("reference", torch.float32, FLOAT32),
]
every_limit = pytest.mark.parametrize(("kernel", "dtype", "limit"), LIMITS)


def problem(seed: int, dtype: torch.dtype) -> Case:
    return case(
        batch=1, heads=4, kv_heads=2, queries=64, keys=192, head_dim=32, dtype=dtype, seed=seed
    )


def in_blocks(given: Case, count: int, kernel: str) -> list[Tensor]:
    """Compute out, dq, dk and dv in ``count`` blocks of keys, each with its own queries' pass."""
    q, k, v, dout = given
    blocks = list(zip(k.chunk(count, dim=2), v.chunk(count, dim=2), strict=True))
    first, *others = [attend(q, *block, kernel=kernel) for block in blocks]
    state = AttentionState(first.out.clone(), first.lse.clone())
    for other in others:
        state.merge_(other)
    out = state.out.to(q.dtype)
    dq, grads = torch.zeros_like(state.out), []
    for keys, values in blocks:
        part, dk, dv = attend_backward(dout, q, keys, values, out, state.lse, kernel=kernel)
        dq += part
        grads.append((dk, dv))
    dk, dv = (torch.cat(parts, dim=2) for parts in zip(*grads, strict=True))
    return [out, *(x.to(q.dtype) for x in (dq, dk, dv))]


def ratios(kernel: str, dtype: torch.dtype, count: int) -> dict[str, float]:
    """Error of each result over that of one device, both averaged over the seeds."""
    found: dict[str, list[float]] = {name: [] for name in ("out", "dq", "dk", "dv")}
    baseline: dict[str, list[float]] = {name: [] for name in found}
    for seed in SEEDS:
        given = problem(seed, dtype)
        exact, single = oracle.attention(*given), oracle.one_device(*given)
        for name, result in zip(found, in_blocks(given, count, kernel), strict=True):
            found[name].append(oracle.error(result, getattr(exact, name)))
            baseline[name].append(oracle.error(getattr(single, name), getattr(exact, name)))
    return {name: statistics.mean(found[name]) / statistics.mean(baseline[name]) for name in found}


@every_limit
@pytest.mark.parametrize("count", [1, 8])
def test_report_a18_errors_are_those_of_one_device(
    kernel: str, dtype: torch.dtype, limit: float, count: int
) -> None:
    for name, ratio in ratios(kernel, dtype, count).items():
        assert ratio <= limit, f"{name} has {ratio:.3f} times the error of one device"


@every_limit
def test_report_a3_the_error_does_not_grow_with_the_number_of_blocks(
    kernel: str, dtype: torch.dtype, limit: float
) -> None:
    few, many = ratios(kernel, dtype, 2), ratios(kernel, dtype, 32)
    for name in few:
        assert many[name] <= 1.1 * few[name], f"{name}: {few[name]:.3f} grew to {many[name]:.3f}"
        assert many[name] <= limit


@pytest.mark.parametrize("kernel", ["cpu_flash", "reference"])
@pytest.mark.parametrize("count", [1, 2, 32])
def test_float64_is_exact_to_twelve_digits(kernel: str, count: int) -> None:
    given = problem(0, torch.float64)
    exact = oracle.attention(*given)
    for name, result in zip(
        ("out", "dq", "dk", "dv"), in_blocks(given, count, kernel), strict=True
    ):
        assert oracle.error(result, getattr(exact, name)) < 1e-12


@pytest.mark.parametrize(("kernel", "dtype"), [x[:2] for x in LIMITS if x[2] == WIDE_PARTIALS])
@pytest.mark.parametrize("count", [1, 32])
def test_with_wide_partial_results_only_the_last_rounding_counts(
    kernel: str, dtype: torch.dtype, count: int
) -> None:
    """Compared with the float64 result rounded once, which no computation can beat by far."""
    found = {name: 0.0 for name in ("out", "dq", "dk", "dv")}
    best = dict(found)
    for seed in SEEDS:
        given = problem(seed, dtype)
        exact = oracle.attention(*given)
        for name, result in zip(found, in_blocks(given, count, kernel), strict=True):
            expected = getattr(exact, name)
            found[name] += oracle.error(result, expected)
            best[name] += oracle.error(expected.to(dtype), expected)
    for name in found:
        assert found[name] <= WIDE_PARTIALS * best[name]
