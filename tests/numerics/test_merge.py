"""Merging two rows, case by case, through every way of merging that the library has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from ringlab.numerics import AttentionState, attend
from ringlab.numerics import merge as arithmetic
from tests import oracle
from tests.numerics.cases import assert_near, case, naive_merge, random_state, same, state

INF, NAN = math.inf, math.nan
Merge = Callable[[AttentionState, AttentionState], AttentionState]


def copy(given: AttentionState) -> AttentionState:
    return replace(given, out=given.out.clone(), lse=given.lse.clone())


def in_place(left: AttentionState, right: AttentionState) -> AttentionState:
    return copy(left).merge_(right)


def in_rows(left: AttentionState, right: AttentionState) -> AttentionState:
    """Merge into the last rows of a longer state."""
    out = torch.cat([torch.full_like(left.out, NAN), left.out], dim=2)
    lse = torch.cat([torch.full_like(left.lse, NAN), left.lse], dim=2)
    longer = replace(left, out=out, lse=lse)
    longer.rows(left.out.shape[2]).merge_(right)
    return AttentionState(*(x[:, :, left.out.shape[2] :].contiguous() for x in (out, lse)))


every_way = pytest.mark.parametrize(
    "merge", [AttentionState.merge, in_place, in_rows], ids=["merge", "merge_", "rows"]
)

# (out, lse) of the accumulator and of the block.
MERGE_TABLE = {
    "both finite": ((1.0, 0.5), (2.0, -0.25)),
    "the block's LSE 100 above": ((1.0, 0.0), (2.0, 100.0)),
    "the block's LSE 100 below": ((1.0, 100.0), (2.0, 0.0)),
    "the block empty": ((1.0, 0.5), (0.0, -INF)),
    "the accumulator empty": ((0.0, -INF), (2.0, 0.5)),
    "both empty": ((0.0, -INF), (0.0, -INF)),
    "the block empty with garbage beside it": ((1.0, 0.5), (NAN, -INF)),
    "the accumulator empty with garbage beside it": ((INF, -INF), (2.0, 0.5)),
    "both empty with garbage beside them": ((NAN, -INF), (-INF, -INF)),
}


@every_way
@pytest.mark.parametrize("rows", MERGE_TABLE.values(), ids=MERGE_TABLE.keys())
def test_merge_table(rows: tuple[tuple[float, float], tuple[float, float]], merge: Merge) -> None:
    merged = merge(state(rows[0]), state(rows[1]))
    out, lse = naive_merge(*rows)
    torch.testing.assert_close(merged.out, torch.full_like(merged.out, out), rtol=0, atol=1e-15)
    torch.testing.assert_close(merged.lse, torch.full_like(merged.lse, lse), rtol=1e-15, atol=0)


@every_way
def test_rows_of_one_state_are_merged_independently(merge: Merge) -> None:
    left, right = zip(*MERGE_TABLE.values(), strict=True)
    merged = merge(state(*left), state(*right))
    expected = state(*(naive_merge(*rows) for rows in MERGE_TABLE.values()))
    torch.testing.assert_close(merged.out, expected.out, rtol=0, atol=1e-15)
    torch.testing.assert_close(merged.lse, expected.lse, rtol=1e-15, atol=0)


@every_way
@pytest.mark.parametrize("gap", [100.0, -100.0, 1e4, -1e4])
def test_report_a1_blocks_whose_lse_differ_by_far_merge_to_the_larger(
    gap: float, merge: Merge
) -> None:
    merged = merge(state((3.0, 0.0)), state((5.0, gap)))
    assert merged.out.unique().item() == (5.0 if gap > 0 else 3.0)
    assert merged.lse.item() == pytest.approx(max(gap, 0.0), abs=1e-15)


@every_way
def test_report_a2_lse_beyond_the_range_of_exp_stays_finite(merge: Merge) -> None:
    merged = merge(state((3.0, 800.0), (1.0, 1e30)), state((5.0, 801.0), (1.0, 1e30)))
    assert torch.isfinite(merged.out).all()
    torch.testing.assert_close(merged.lse[..., 0].item(), 801 + math.log1p(math.exp(-1)))


def test_report_a2_large_scores_give_a_finite_result() -> None:
    q, k, v, _ = case(dtype=torch.float64)
    merged = attend(q, k[:, :, :4], v[:, :, :4], scale=1e3).merge(
        attend(q, k[:, :, 4:], v[:, :, 4:], scale=1e3)
    )
    exact = oracle.attention(q, k, v, scale=1e3)
    assert exact.lse.max() > 709
    assert_near(merged.out, exact.out, 1e-12)
    assert_near(merged.lse, exact.lse, 1e-12)


@every_way
@pytest.mark.parametrize("lse", [INF, -INF, NAN])
@pytest.mark.parametrize("out", [0.0, NAN])
def test_report_a5_every_kernels_empty_row_is_the_identity(
    lse: float, out: float, merge: Merge
) -> None:
    raw_out, raw_lse = torch.full((1, 1, 1, 3), out), torch.full((1, 1, 1), lse)
    block = AttentionState.canonical(raw_out, raw_lse)
    other = state((2.0, 0.5), dtype=torch.float32)
    assert same(merge(block, other), other)
    assert same(merge(other, block), other)


@every_way
@pytest.mark.parametrize("canonical", [False, True])
def test_report_a6_empty_is_the_identity_to_the_last_bit(canonical: bool, merge: Merge) -> None:
    given = random_state((2, 3, 5, 4), seed=1, spread=1e3)
    given.out[0, 0, 0] = -0.0
    if canonical:
        given = AttentionState.canonical(given.out, given.lse)
    empty = AttentionState.empty(2, 3, 5, 4, dtype=torch.float64)
    assert same(merge(given, empty), given)
    assert same(merge(empty, given), given)


@every_way
def test_report_a7_two_empty_states_stay_empty(merge: Merge) -> None:
    empty = AttentionState.empty(2, 3, 5, 4)
    assert same(merge(empty, empty), empty)


@every_way
def test_canonical_states_with_some_empty_rows_merge_row_by_row(merge: Merge) -> None:
    left, right = (state(*rows) for rows in zip(*MERGE_TABLE.values(), strict=True))
    merged = merge(*(AttentionState.canonical(x.out, x.lse) for x in (left, right)))
    expected = left.merge(right)
    assert torch.equal(merged.out, expected.out)
    assert torch.equal(merged.lse, expected.lse)


def test_report_a7_the_single_pass_keeps_empty_rows_empty() -> None:
    given = state((2.0, 0.5), (0.0, -INF), (1.0, 1.0))
    empty = AttentionState.empty(1, 1, 3, 3, dtype=torch.float64)
    for left, right in ((empty, given), (given, empty), (empty, empty)):
        merged = copy(left)
        arithmetic._fused((left.out, left.lse), (right.out, right.lse), (merged.out, merged.lse))
        expected = empty if left is right else given
        assert torch.equal(merged.out, expected.out)
        assert torch.equal(merged.lse, expected.lse)


def test_report_a8_a_prefill_chunk_without_keys_changes_nothing() -> None:
    q, k, v, _ = case(dtype=torch.float64)
    running = AttentionState.empty(2, 4, 7, 16, dtype=torch.float64)
    for start, stop in ((0, 4), (4, 4), (4, 9)):
        running = running.merge(attend(q, k[:, :, start:stop], v[:, :, start:stop]))
    exact = oracle.attention(q, k, v)
    assert_near(running.out, exact.out, 1e-14)
    assert_near(running.lse, exact.lse, 1e-14)


def test_report_a11_merge_knows_no_base() -> None:
    given = state((1.0, 0.5))
    with pytest.raises(TypeError, match="base"):
        given.merge(given, base=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("raw", [None, (torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1))])
def test_report_a11_what_is_not_a_state_does_not_merge(raw: object) -> None:
    given = state((1.0, 0.5))
    for merge in (given.merge, given.merge_):
        with pytest.raises(TypeError, match=r"AttentionState\.canonical"):
            merge(raw)  # type: ignore[arg-type]


def test_states_of_other_queries_or_dtype_do_not_merge() -> None:
    given = state((1.0, 0.5), (1.0, 0.5))
    with pytest.raises(ValueError, match=r"rows\(start, stop\)"):
        given.merge(state((1.0, 0.5)))
    with pytest.raises(ValueError, match="dtype"):
        given.merge(state((1.0, 0.5), (1.0, 0.5), dtype=torch.float32))


def test_merging_into_rows_leaves_the_other_rows_alone() -> None:
    given, block = random_state((2, 3, 6, 4), seed=1), random_state((2, 3, 2, 4), seed=2)
    before = copy(given)
    given.rows(2, 4).merge_(block)
    middle = AttentionState(before.out[:, :, 2:4], before.lse[:, :, 2:4]).merge(block)
    assert torch.equal(
        given.out, torch.cat([before.out[:, :, :2], middle.out, before.out[:, :, 4:]], 2)
    )
    assert torch.equal(
        given.lse, torch.cat([before.lse[:, :, :2], middle.lse, before.lse[:, :, 4:]], 2)
    )


def test_merge_leaves_its_operands_alone_and_merge_works_in_place() -> None:
    left, right = random_state((1, 2, 3, 4), seed=1), random_state((1, 2, 3, 4), seed=2)
    left_before, right_before = copy(left), copy(right)
    merged = left.merge(right)
    assert same(left, left_before)
    assert left.merge_(right) is left
    assert same(left, merged)
    assert same(right, right_before)


def test_a_nan_in_the_data_is_not_hidden_by_merging() -> None:
    merged = state((NAN, NAN), (1.0, 0.0)).merge(state((1.0, 0.0), (1.0, 0.0)))
    assert merged.out[0, 0, 0].isnan().all()
    assert merged.lse[0, 0, 0].isnan()
    assert torch.isfinite(merged.out[0, 0, 1]).all()
