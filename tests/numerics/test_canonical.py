"""Bringing what kernels return to the one form that merges."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ringlab.numerics import AttentionState
from tests.numerics.cases import random_state, same

SHAPE = (2, 3, 5, 4)


def raw(seed: int = 1) -> tuple[Tensor, Tensor]:
    given = random_state(SHAPE, seed=seed)
    return given.out.float(), given.lse.float()


def wide(out: Tensor, lse: Tensor) -> AttentionState:
    return AttentionState(out, lse.double())


@pytest.mark.parametrize(
    "habit",
    [
        lambda lse: lse.unsqueeze(-1),
        lambda lse: torch.nn.functional.pad(lse, (0, 27), value=math.nan),
        lambda lse: torch.nn.functional.pad(lse, (0, 27), value=7.0).unsqueeze(-1),
        lambda lse: lse.transpose(1, 2).contiguous().transpose(1, 2),
        lambda lse: lse.double(),
    ],
    ids=["[B, H, L, 1]", "padded", "padded [B, H, L, 1]", "strided", "float64"],
)
def test_report_a14_every_layout_of_an_lse_becomes_one(habit: object) -> None:
    out, lse = raw()
    found = AttentionState.canonical(out, habit(lse))  # type: ignore[operator]
    assert same(found, wide(out, lse))
    assert found.lse.is_contiguous()


@pytest.mark.parametrize(
    "shape", [(2, 3), (6, 5), (2, 5, 3), (2, 3, 4), (2, 3, 5, 2), (1, 3, 5)], ids=str
)
def test_report_a14_an_lse_of_unknown_layout_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"\[2, 3, 5\]"):
        AttentionState.canonical(raw()[0], torch.zeros(shape))


def test_report_b13_a_result_without_an_lse_is_refused() -> None:
    with pytest.raises(TypeError, match="without an LSE cannot be merged"):
        AttentionState.canonical(raw()[0], None)  # type: ignore[arg-type]


@pytest.mark.parametrize("base", [2.0, 10.0, 0.5])
def test_report_a12_an_lse_goes_to_another_base_and_back(base: float) -> None:
    given = random_state(SHAPE, seed=1, spread=100.0)
    given.lse[0, 0, 0] = -math.inf
    given.out[0, 0, 0] = 0.0
    foreign = given.lse_in(base)
    assert foreign[1, 1, 1].item() == pytest.approx(math.log(given.lse[1, 1, 1].exp(), base))
    back = AttentionState.canonical(given.out, foreign, base=base)
    torch.testing.assert_close(back.lse, given.lse, rtol=1e-15, atol=0)
    assert torch.equal(back.out, given.out)


@pytest.mark.parametrize("base", [1.0, 0.0, -2.0, math.inf, math.nan])
def test_report_a12_what_is_no_base_is_refused(base: float) -> None:
    with pytest.raises(ValueError, match="base of a logarithm"):
        AttentionState.canonical(*raw(), base=base)


@pytest.mark.parametrize("lse", [math.inf, -math.inf, math.nan])
def test_report_a5_rows_that_saw_no_key_become_empty(lse: float) -> None:
    out, lses = raw()
    lses[0, 1, 2], out[0, 1, 2] = lse, math.nan
    found = AttentionState.canonical(out, lses)
    assert found.lse[0, 1, 2] == -math.inf
    assert torch.equal(found.out[0, 1, 2], torch.zeros(4))
    others = torch.isfinite(lses)
    assert torch.equal(found.out[others], out[others])


def test_with_the_empty_rows_named_a_nan_elsewhere_stays_a_nan() -> None:
    out, lse = raw()
    lse[0, 1, 2] = math.nan
    empty = torch.tensor([True, False, False, False, False])
    found = AttentionState.canonical(out, lse, empty=empty)
    assert (found.lse[..., 0] == -math.inf).all()
    assert (found.out[:, :, 0] == 0).all()
    assert found.lse[0, 1, 2].isnan()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_state_accumulates_in_float32_or_float64_and_its_lse_in_float64(
    dtype: torch.dtype,
) -> None:
    out, lse = raw()
    for given in (
        AttentionState.canonical(out.to(dtype), lse),
        AttentionState.empty(1, 2, 3, 4, dtype=dtype),
    ):
        assert given.out.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        assert given.lse.dtype == torch.float64


def test_a_state_of_raw_results_is_refused_with_the_way_to_make_one() -> None:
    out, lse = raw()
    with pytest.raises(TypeError, match=r"AttentionState\.canonical"):
        AttentionState(out.half(), lse.double())
    with pytest.raises(TypeError, match=r"its lse is torch\.float64"):
        AttentionState(out, lse)
    with pytest.raises(ValueError, match=r"lse \[B, H, L\]"):
        wide(out, lse.unsqueeze(-1))
    with pytest.raises(ValueError, match="lse on meta"):
        wide(out, lse.to("meta"))
