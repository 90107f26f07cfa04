"""What each fused operator of torch returns as its LSE, and that a state makes the same of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ringlab.numerics import AttentionState
from tests import oracle
from tests.numerics.cases import TOLERANCE, assert_near, case

aten: Any = torch.ops.aten
SCALE = 0.3
NEAR = {torch.bfloat16: TOLERANCE[torch.bfloat16], torch.float32: 1e-3}  # a GPU's may be TF32's
Raw = Callable[[Tensor, Tensor, Tensor, bool], tuple[Tensor, Tensor]]


def flash_for_cpu(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    found = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, scale=SCALE)
    return found[0], found[1]


def flash(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    found = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=SCALE)
    return found[0], found[1]


def efficient(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    operator = aten._scaled_dot_product_efficient_attention
    found = operator(q, k, v, None, True, 0.0, causal, scale=SCALE)
    return found[0], found[1]


def cudnn(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    operator = aten._scaled_dot_product_cudnn_attention
    found = operator(q, k, v, None, True, 0.0, causal, False, scale=SCALE)
    return found[0], found[1]


every_operator = pytest.mark.parametrize(
    ("device", "raw", "dtype"),
    [
        pytest.param("cpu", flash_for_cpu, torch.bfloat16, id="flash-for-cpu"),
        pytest.param("cpu", flash_for_cpu, torch.float32, id="flash-for-cpu-float32"),
        *(
            pytest.param("cuda", raw, dtype, id=name, marks=pytest.mark.cuda)
            for raw, dtype, name in (
                (flash, torch.bfloat16, "flash"),
                (cudnn, torch.bfloat16, "cudnn"),
                (efficient, torch.bfloat16, "efficient"),
                (efficient, torch.float32, "efficient-float32"),
            )
        ),
    ],
)


def operands(device: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """As many KV heads as query heads, which every operator takes; no length that 32 divides."""
    given = case(heads=4, kv_heads=4, queries=70, keys=70, head_dim=64, dtype=dtype)
    q, k, v, _ = (x.to(device) for x in given)
    return q, k, v


@every_operator
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
def test_it_is_a_natural_logarithm_with_a_number_for_each_row(
    device: str, raw: Raw, dtype: torch.dtype, causal: bool
) -> None:
    q, k, v = operands(device, dtype)
    out, lse = raw(q, k, v, causal)
    assert lse.dtype == torch.float32
    assert lse.shape[:2] == q.shape[:2]
    assert lse.shape[2] >= q.shape[2]
    state = AttentionState.canonical(out, lse)
    exact = oracle.attention(q, k, v, causal=causal, scale=SCALE)
    assert_near(state.lse, exact.lse, 1e-3)
    assert_near(state.out, exact.out, NEAR[dtype])


@every_operator
def test_states_of_two_halves_of_the_keys_merge_into_all_of_them(
    device: str, raw: Raw, dtype: torch.dtype
) -> None:
    q, k, v = operands(device, dtype)
    first, second = (
        AttentionState.canonical(*raw(q, k[:, :, part], v[:, :, part], False))
        for part in (slice(0, 33), slice(33, 70))
    )
    exact = oracle.attention(q, k, v, scale=SCALE)
    merged = first.merge(second)
    assert_near(merged.lse, exact.lse, 1e-3)
    assert_near(merged.out, exact.out, NEAR[dtype])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_rows_whose_scores_are_all_minus_infinity_are_empty_where_they_are_named(
    device: str,
) -> None:
    """What the operators write there differs: the one for CPU says 0, as if the sum were 1."""
    q, k, v = operands(device, torch.float32)
    bias = torch.zeros(2, 4, 70, 72, device=device)[..., :70]  # efficient wants rows aligned
    bias[:, :, 5] = -torch.inf
    if device == "cpu":
        operator = aten._scaled_dot_product_flash_attention_for_cpu
        found = operator(q, k, v, 0.0, False, attn_mask=bias, scale=SCALE)
    else:
        operator = aten._scaled_dot_product_efficient_attention
        found = operator(q, k, v, bias, True, 0.0, False, scale=SCALE)
    rows = torch.arange(70, device=device) == 5
    state = AttentionState.canonical(found[0], found[1], empty=rows)
    assert (state.out[:, :, 5] == 0).all()
    assert (state.lse[:, :, 5] == -torch.inf).all()
    mask = torch.ones(70, 70, dtype=torch.bool, device=device)
    mask[5] = False
    exact = oracle.attention(q, k, v, mask=mask, scale=SCALE)
    assert_near(state.lse, exact.lse, 1e-3)
    assert_near(state.out, exact.out, NEAR[torch.float32])
