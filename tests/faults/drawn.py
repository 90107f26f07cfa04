"""What the searches for faults draw, and how many examples each tier tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringlab import Contiguous, Interleaved, Layout, Striped, ZigZag
from tests.numerics.cases import TOLERANCE
from tests.prefill.cases import METHODS, Attend, Inputs, Step, inputs

T = TypeVar("T")

PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]

orders: st.SearchStrategy[Literal["stream", "host"]] = st.sampled_from(["stream", "host"])
methods: st.SearchStrategy[Attend] = st.sampled_from(METHODS)
sizes = st.integers(1, 8)
lengths = st.one_of(st.integers(0, 40), st.sampled_from([0, 1, *PRIMES]))
layouts: st.SearchStrategy[Layout] = st.one_of(
    st.just(Contiguous()),
    st.just(ZigZag()),
    st.just(Striped()),
    st.integers(1, 41).map(Interleaved),
)
dtypes = st.sampled_from(list(TOLERANCE))
double = st.just(torch.float64)


def two_tiers(few: int, many: int) -> pytest.MarkDecorator:
    """Give a test its number of `examples`: few in the first tier, many in the second."""
    slow = [pytest.mark.slow, pytest.mark.timeout(1200)]
    return pytest.mark.parametrize(
        "examples", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=slow)]
    )


def search(strategy: st.SearchStrategy[T], check: Callable[[T], None], examples: int) -> None:
    """Draw examples and fail with the smallest that `check` fails on."""
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]

    @settings(max_examples=examples, suppress_health_check=quiet)
    @given(strategy)
    def over_all(drawn: T) -> None:
        check(drawn)

    over_all()


@dataclass(frozen=True)
class Problem:
    """One sequence, and how its ranks share it."""

    method: Attend
    layout: Layout
    size: int
    length: int
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    causal: bool
    told: bool
    order: Literal["stream", "host"]
    seed: int

    def inputs(self) -> Inputs:
        return inputs(self.length, batch=self.batch, heads=self.heads, kv_heads=self.kv_heads,
                      head_dim=self.head_dim, dtype=self.dtype, seed=self.seed)  # fmt: skip

    @property
    def options(self) -> dict[str, bool | int]:
        """The options of the call; a call that is `told` the length asks nobody for it."""
        told: dict[str, bool | int] = {"length": self.length} if self.told else {}
        return {"causal": self.causal, **told}


def problems(
    *,
    of: st.SearchStrategy[torch.dtype] = double,
    size: st.SearchStrategy[int] = sizes,
    length: st.SearchStrategy[int] = lengths,
) -> st.SearchStrategy[Problem]:
    """Draw problems; query heads are a multiple of the KV heads."""

    def grouped(heads: tuple[int, int]) -> st.SearchStrategy[Problem]:
        kv_heads, share = heads
        return st.builds(
            Problem,
            method=methods,
            layout=layouts,
            size=size,
            length=length,
            batch=st.integers(1, 3),
            heads=st.just(kv_heads * share),
            kv_heads=st.just(kv_heads),
            head_dim=st.integers(1, 9),
            dtype=of,
            causal=st.booleans(),
            told=st.booleans(),
            order=orders,
            seed=st.integers(0, 2**31),
        )

    return st.tuples(st.integers(1, 3), st.integers(1, 3)).flatmap(grouped)


def assert_near_float64(found: Step, exact: Step, dtype: torch.dtype) -> None:
    """Fail unless dtypes are those of the inputs and numbers those of one device in float64."""
    for name, tensor in found._asdict().items():
        want = getattr(exact, name)
        assert tensor.dtype == dtype, name
        assert tensor.shape == want.shape, name
        if want.numel():
            room = TOLERANCE[dtype] * max(1.0, want.abs().max().item())
            off = (tensor.double() - want).abs().max().item()
            assert off <= room, f"{name} is off by {off:.2e}"
