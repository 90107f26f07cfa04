"""Each fused attention of torch, on every device: its FLOPs and bytes, forward and backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ringlab.operators import work

aten: Any = torch.ops.aten
B, H, L, S, D = 2, 4, 64, 96, 16


def empty(length: int, width: int = D) -> torch.Tensor:
    return torch.empty(B, H, length, width, dtype=torch.bfloat16, device="meta")


q, k, v, out, dout = empty(L), empty(S), empty(S), empty(L), empty(L)
lse = torch.empty(B, H, L, device="meta")
bias = empty(L, S)
seed = torch.empty((), dtype=torch.int64, device="meta")
saved = (dout, q, k, v)
lengths = (None, None, L, S)
parts = [True, True, True, False]


def forward(causal: bool) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Calls of the forward operators, as torch makes them."""
    return {
        "flash": (aten._scaled_dot_product_flash_attention, (q, k, v, 0.0, causal, False)),
        "efficient": (
            aten._scaled_dot_product_efficient_attention,
            (q, k, v, None, True, 0.0, causal),
        ),
        "cudnn": (aten._scaled_dot_product_cudnn_attention, (q, k, v, None, True, 0.0, causal)),
        "overrideable": (
            aten._scaled_dot_product_fused_attention_overrideable,
            (q, k, v, None, 0.0, causal),
        ),
        "cpu": (aten._scaled_dot_product_flash_attention_for_cpu, (q, k, v, 0.0, causal)),
    }


def backward(causal: bool) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """The same backward."""
    return {
        "flash": (
            aten._scaled_dot_product_flash_attention_backward,
            (*saved, out, lse, *lengths, 0.0, causal, seed, seed),
        ),
        "efficient": (
            aten._scaled_dot_product_efficient_attention_backward,
            (*saved, None, out, lse, seed, seed, 0.0, parts, causal),
        ),
        "cudnn": (
            aten._scaled_dot_product_cudnn_attention_backward,
            (*saved, out, lse, seed, seed, None, *lengths, 0.0, causal),
        ),
        "overrideable": (
            aten._scaled_dot_product_fused_attention_overrideable_backward,
            (*saved, None, parts, out, lse, *lengths, 0.0, causal, seed, seed),
        ),
        "cpu": (
            aten._scaled_dot_product_flash_attention_for_cpu_backward,
            (*saved, out, lse, 0.0, causal),
        ),
    }


every_operator = pytest.mark.parametrize("name", forward(False))
masked_or_not = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


@every_operator
@masked_or_not
def test_forward_counts_its_pairs_and_what_it_reads_and_writes(name: str, causal: bool) -> None:
    operator, args = forward(causal)[name]
    found = work(operator.default, args, {"scale": 0.3}, (out, lse))
    pairs = L * (L + 1) // 2 if causal else L * S
    assert found is not None
    assert found.kind == "attention"
    assert found.flops == 4 * D * H * B * pairs
    assert found.causal == causal
    assert found.bytes_read == sum(x.nbytes for x in (q, k, v))
    assert found.bytes_written == out.nbytes + lse.nbytes


@every_operator
@masked_or_not
def test_backward_counts_its_pairs_and_what_it_reads_and_writes(name: str, causal: bool) -> None:
    operator, args = backward(causal)[name]
    found = work(operator.default, args, {"scale": 0.3}, (q, k, v))
    pairs = L * (L + 1) // 2 if causal else L * S
    assert found is not None
    assert found.kind == "attention backward"
    assert found.flops == 10 * D * H * B * pairs
    assert found.causal == causal
    assert found.bytes_read == sum(x.nbytes for x in (dout, q, k, v, out, lse))
    assert found.bytes_written == sum(x.nbytes for x in (q, k, v))


def test_what_is_added_to_the_scores_is_read_and_is_causal_by_name_too() -> None:
    efficient = aten._scaled_dot_product_efficient_attention.default
    found = work(efficient, (q, k, v, bias, True), {"is_causal": True}, (out, lse))
    assert found is not None
    assert found.bytes_read == sum(x.nbytes for x in (q, k, v, bias))
    assert found.causal
    cpu = aten._scaled_dot_product_flash_attention_for_cpu.default
    found = work(cpu, (q, k, v), {"attn_mask": bias}, (out, lse))
    assert found is not None
    assert found.bytes_read == sum(x.nbytes for x in (q, k, v, bias))
    assert not found.causal


@pytest.mark.parametrize("name", ["flash", "efficient", "cudnn"])
def test_torch_itself_counts_the_same_flops_where_all_pairs_may_attend(name: str) -> None:
    operator, args = forward(False)[name]
    with FlopCounterMode(display=False) as counter:
        result = operator(*args)
    found = work(operator.default, args, {}, result)
    assert found is not None
    assert found.flops == counter.get_total_flops()
