"""Errors as ratios to one device in the same dtype, on every rank."""

from __future__ import annotations

import statistics
from functools import lru_cache

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tests import oracle
from tests.decode.cases import METHODS, Sequence, every_method, expected, run, sequence

SEEDS = 8  # every sequence of the batch is drawn on its own

LIMITS = [
    (None, torch.float32, 1.3),
    ("reference", torch.float32, 1.3),
    (None, torch.bfloat16, 1.5),
    (None, torch.float16, 1.5),
    ("reference", torch.bfloat16, 1.05),
    ("reference", torch.float16, 1.05),
    ("cpu_flash_float32", torch.bfloat16, 1.05),
]
every_limit = pytest.mark.parametrize(("kernel", "dtype", "limit"), LIMITS, ids=str)


@lru_cache(maxsize=16)
def problem(dtype: torch.dtype, new: int) -> tuple[Sequence, Tensor, Tensor]:
    """A sequence, what float64 gives, and what PyTorch gives on one device in the dtype."""
    given = sequence(200, new, batch=SEEDS, heads=8, kv_heads=2, head_dim=32, dtype=dtype)
    mask = torch.arange(200 - new, 200)[:, None] >= torch.arange(200)
    single = scaled_dot_product_attention(*given, attn_mask=mask, enable_gqa=True)
    return given, expected(given), single


def mean_error(found: Tensor, exact: Tensor) -> float:
    """Relative error in the Frobenius norm, its mean over the sequences of the batch."""
    return statistics.mean(oracle.error(x, y) for x, y in zip(found, exact, strict=True))


def ratio(method: str, size: int, kernel: str | None, dtype: torch.dtype, new: int) -> float:
    """The error over that of one device."""
    given, exact, single = problem(dtype, new)
    found = run(given, size, method, kernel=kernel)
    return mean_error(found, exact) / mean_error(single, exact)


@every_method
@every_limit
@pytest.mark.parametrize("new", [1, 5])
def test_report_a3_a18_errors_are_near_those_of_one_device(
    method: str, kernel: str | None, dtype: torch.dtype, limit: float, new: int
) -> None:
    assert ratio(method, 4, kernel, dtype, new) <= limit


@pytest.mark.parametrize("method", METHODS[:1])
@pytest.mark.parametrize(("kernel", "dtype", "limit"), [LIMITS[0], LIMITS[2], LIMITS[4]], ids=str)
def test_report_a3_errors_do_not_grow_with_the_number_of_ranks(
    method: str, kernel: str | None, dtype: torch.dtype, limit: float
) -> None:
    few, many = (ratio(method, size, kernel, dtype, 1) for size in (2, 32))
    assert many <= 1.1 * few
    assert many <= limit
