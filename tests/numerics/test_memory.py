"""Peak memory of a block, as torch's allocator saw it, scratch inside operators included."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from ringlab.numerics import attend, attend_backward
from tests.numerics.cases import Case, case


def peak_bytes(run: Callable[[], object]) -> int:
    """Most bytes allocated at one time while `run` runs, over what was there before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        kept = run()
    events = recorded.profiler.kineto_results.events()
    changes = sorted(
        (event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"
    )
    live = peak = 0
    for _, change in changes:
        live += change
        peak = max(peak, live)
    assert kept is not None
    return peak


def problem(
    length: int, heads: int = 2, kv_heads: int = 2, dtype: torch.dtype = torch.float32
) -> Case:
    return case(batch=1, heads=heads, kv_heads=kv_heads, queries=length, keys=length, dtype=dtype)


def forward(given: Case, kernel: str) -> Callable[[], object]:
    q, k, v, _ = given
    return lambda: attend(q, k, v, causal=True, kernel=kernel)


def backward(given: Case, kernel: str) -> Callable[[], object]:
    q, k, v, dout = given
    done = attend(q, k, v, causal=True, kernel=kernel)
    return lambda: attend_backward(dout, q, k, v, done.out, done.lse, causal=True, kernel=kernel)


both_ways = pytest.mark.parametrize("way", [forward, backward])


@both_ways
@pytest.mark.parametrize(
    ("kernel", "dtype"), [("cpu_flash", torch.float32), ("cpu_flash_float32", torch.bfloat16)]
)
def test_twice_the_length_takes_twice_the_memory(
    way: Callable[[Case, str], Callable[[], object]], kernel: str, dtype: torch.dtype
) -> None:
    short, long = (peak_bytes(way(problem(n, dtype=dtype), kernel)) for n in (1024, 2048))
    assert short > 1024 * 2 * 16 * 4
    assert long <= 2.2 * short


@both_ways
def test_the_meter_sees_the_scores_of_the_reference(
    way: Callable[[Case, str], Callable[[], object]],
) -> None:
    assert peak_bytes(way(problem(512), "reference")) > 2 * 512 * 512 * 4


@both_ways
@pytest.mark.parametrize("kernel", ["cpu_flash", "reference"])
def test_shared_kv_heads_are_not_repeated_in_memory(
    way: Callable[[Case, str], Callable[[], object]], kernel: str
) -> None:
    """Few queries and wide heads: K repeated for all query heads would be most of the memory."""
    given = case(batch=1, heads=8, kv_heads=1, queries=2, keys=1024, head_dim=128)
    gradients = 2 * given.k.nbytes if way is backward else 0
    assert peak_bytes(way(given, kernel)) < 3 * given.k.nbytes + gradients
