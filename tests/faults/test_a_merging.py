"""A: partial results are merged right, whatever their LSE, their order and their empty rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import strategies as st

from ringlab.numerics import AttentionState, attend
from tests import oracle
from tests.faults.drawn import search, two_tiers
from tests.numerics.cases import assert_near, case, same

HABITS = [-math.inf, math.inf, math.nan]
"""What kernels in use write as the LSE of a row that saw no key."""


@dataclass(frozen=True)
class Partials:
    """How the keys of a block are cut, and how the parts are put together again."""

    cuts: list[int]
    order: list[int]
    allowed: float
    scale: float
    base: float
    habit: float
    garbage: float
    in_place: bool
    pairwise: bool
    seed: int


KEYS = 12

partials = st.lists(st.integers(0, KEYS), max_size=7).map(sorted).flatmap(
    lambda cuts: st.builds(
        Partials,
        cuts=st.just(cuts),
        order=st.permutations(range(len(cuts) + 1)),
        allowed=st.sampled_from([0.0, 0.2, 0.7, 1.0]),
        scale=st.sampled_from([0.1, 1.0, 300.0, 1e4]),
        base=st.sampled_from([math.e, 2.0, 10.0]),
        habit=st.sampled_from(HABITS),
        garbage=st.sampled_from([0.0, math.nan, math.inf, 1e30]),
        in_place=st.booleans(),
        pairwise=st.booleans(),
        seed=st.integers(0, 2**31),
    )
)  # fmt: skip


def raw(state: AttentionState, drawn: Partials) -> AttentionState:
    """The state as a kernel with other habits would return it, made canonical again."""
    out, lse = state.out.clone(), state.lse / math.log(drawn.base)
    empty = state.lse == -math.inf
    out[empty], lse[empty] = drawn.garbage, drawn.habit
    return AttentionState.canonical(out, lse, base=drawn.base)


def merged(states: list[AttentionState], drawn: Partials) -> AttentionState:
    """Merge from the left, or in pairs as a tree does."""
    while len(states) > 1:
        left, right, *rest = states
        both = left.merge_(right) if drawn.in_place else left.merge(right)
        states = [*rest, both] if drawn.pairwise else [both, *rest]
    return states[0]


def check_partials(drawn: Partials) -> None:
    q, k, v, _ = case(keys=KEYS, seed=drawn.seed, dtype=torch.float64)
    mask = torch.rand(7, KEYS, generator=torch.Generator().manual_seed(drawn.seed)) < drawn.allowed
    parts = [slice(*cut) for cut in zip([0, *drawn.cuts], [*drawn.cuts, KEYS], strict=True)]
    states = [
        raw(attend(q, k[:, :, p], v[:, :, p], mask=mask[:, p], scale=drawn.scale), drawn)
        for p in (parts[i] for i in drawn.order)
    ]
    found = merged(states, drawn)
    exact = oracle.attention(q, k, v, mask=mask, scale=drawn.scale)
    assert torch.isfinite(found.out).all()
    # An LSE of 1e5 that went to another base and back is exact to 1e5 roundings.
    assert_near(found.out, exact.out, 1e-9)
    assert_near(found.lse, exact.lse, 1e-13)
    empty = AttentionState.empty(*found.out.shape, dtype=torch.float64)
    for one, other in ((found, empty), (empty, found)):
        assert same(one.merge(other), found)


@two_tiers(few=50, many=800)
def test_any_parts_in_any_order_and_habit_merge_to_attention_over_all_keys(examples: int) -> None:
    search(partials, check_partials, examples)


@pytest.mark.parametrize("habit", HABITS)
def test_report_a5_a6_two_empty_parts_of_any_habit_merge_to_an_empty_one(habit: float) -> None:
    out = torch.full((1, 2, 3, 4), math.nan)
    one = AttentionState.canonical(out, torch.full((1, 2, 3), habit))
    for merge in (one.merge, one.merge_):
        both = merge(AttentionState.canonical(out, torch.full((1, 2, 3), -habit)))
        assert torch.equal(both.out, torch.zeros_like(out))
        assert torch.equal(both.lse, torch.full((1, 2, 3), -math.inf, dtype=torch.float64))
