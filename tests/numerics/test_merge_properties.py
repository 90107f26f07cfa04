"""The algebra of merging, over drawn states: more than a thousand of them in all."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ringlab.numerics import AttentionState, attend
from tests import oracle
from tests.numerics.cases import assert_near, same

DTYPES = st.sampled_from([torch.float32, torch.float64])
GARBAGE = st.sampled_from([math.nan, math.inf, -math.inf, 1e30, 0.0])
LSES = st.one_of(
    st.just(-math.inf), st.floats(-1e4, 1e4), st.floats(-3, 3), st.sampled_from([1e4, -1e4])
)
OUTS = st.floats(-8, 8)
SHAPES = st.tuples(*(st.integers(1, 3) for _ in range(4)))
cases = settings(max_examples=150)


@st.composite
def states(
    draw: st.DrawFn, shape: tuple[int, ...], dtype: torch.dtype, *, garbage: bool = True
) -> AttentionState:
    """Draw a state; beside an empty row stands anything, or 0 without `garbage`."""
    rows, head_dim = math.prod(shape[:-1]), shape[-1]
    drawn = draw(st.lists(LSES, min_size=rows, max_size=rows))
    lse = torch.tensor(drawn, dtype=torch.float64)
    size = rows * head_dim
    out = torch.tensor(draw(st.lists(OUTS, min_size=size, max_size=size)), dtype=dtype)
    out = out.view(rows, head_dim)
    out[lse == -math.inf] = draw(GARBAGE) if garbage else 0.0
    return AttentionState(out.view(shape), lse.view(shape[:-1]))


@st.composite
def several(draw: st.DrawFn, count: int, *, garbage: bool = True) -> list[AttentionState]:
    """Draw states of one shape and dtype."""
    shape, dtype = draw(SHAPES), draw(DTYPES)
    return [draw(states(shape, dtype, garbage=garbage)) for _ in range(count)]


def assert_same_to_rounding(left: AttentionState, right: AttentionState) -> None:
    """An LSE of 1e4 is exact to 1e4 roundings, and so are the weights computed from it."""
    finite = left.lse[torch.isfinite(left.lse)].abs()
    size = 1.0 + (finite.max().item() if finite.numel() else 0.0)
    rounding = 8 * torch.finfo(torch.float64).eps * size
    torch.testing.assert_close(left.lse, right.lse, rtol=0, atol=rounding)
    rounding = 8 * max(rounding, 8 * torch.finfo(left.out.dtype).eps)
    torch.testing.assert_close(left.out, right.out, rtol=0, atol=rounding)


@cases
@given(several(1, garbage=False))
def test_empty_is_the_identity_on_both_sides(drawn: list[AttentionState]) -> None:
    (given,) = drawn
    empty = AttentionState.empty(*given.out.shape, dtype=given.out.dtype)
    assert same(given.merge(empty), given)
    assert same(empty.merge(given), given)


@cases
@given(several(2))
def test_merge_is_commutative(drawn: list[AttentionState]) -> None:
    left, right = drawn
    assert_same_to_rounding(left.merge(right), right.merge(left))


@cases
@given(several(3))
def test_merge_is_associative(drawn: list[AttentionState]) -> None:
    one, two, three = drawn
    assert_same_to_rounding(one.merge(two).merge(three), one.merge(two.merge(three)))


@cases
@given(several(2))
def test_what_stands_beside_an_empty_row_is_never_read(drawn: list[AttentionState]) -> None:
    clean = [AttentionState.canonical(x.out, x.lse) for x in drawn]
    merged, expected = drawn[0].merge(drawn[1]), clean[0].merge(clean[1])
    assert torch.equal(merged.out, expected.out)
    assert torch.equal(merged.lse, expected.lse)


@cases
@given(several(2))
def test_merge_in_place_gives_the_same_bits(drawn: list[AttentionState]) -> None:
    left, right = drawn
    merged = left.merge(right)
    assert same(left.merge_(right), merged)


@cases
@given(several(2, garbage=False))
def test_the_lse_is_that_of_the_sum_and_the_output_lies_between(
    drawn: list[AttentionState],
) -> None:
    left, right = drawn
    merged = left.merge(right)
    assert_near(merged.lse, torch.logaddexp(left.lse, right.lse), 1e-15)
    both = (torch.isfinite(left.lse) & torch.isfinite(right.lse)).unsqueeze(-1)
    low, high = torch.minimum(left.out, right.out), torch.maximum(left.out, right.out)
    slack = 16 * torch.finfo(left.out.dtype).eps
    assert ((merged.out >= low - slack) & (merged.out <= high + slack) | ~both).all()


def _problem(seed: int, keys: int, allowed: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    q = torch.randn(1, 2, 3, 4, generator=draw, dtype=torch.float64)
    k, v = (torch.randn(1, 1, keys, 4, generator=draw, dtype=torch.float64) for _ in range(2))
    return q, k, v, torch.rand(3, keys, generator=draw) < allowed


@settings(max_examples=120)
@given(
    seed=st.integers(0, 2**31),
    cuts=st.lists(st.integers(0, 12), max_size=5).map(sorted),
    allowed=st.sampled_from([0.0, 0.3, 1.0]),
    scale=st.sampled_from([0.1, 1.0, 1e4]),
)
def test_any_split_of_the_keys_gives_attention_over_all_of_them(
    seed: int, cuts: list[int], allowed: float, scale: float
) -> None:
    q, k, v, mask = _problem(seed, 12, allowed)
    merged = AttentionState.empty(1, 2, 3, 4, dtype=torch.float64)
    for start, stop in zip([0, *cuts], [*cuts, 12], strict=True):
        part = slice(start, stop)
        block = attend(q, k[:, :, part], v[:, :, part], mask=mask[:, part], scale=scale)
        merged = merged.merge(block)
    exact = oracle.attention(q, k, v, mask=mask, scale=scale)
    assert_near(merged.out, exact.out, 1e-10)
    assert_near(merged.lse, exact.lse, 1e-13)
