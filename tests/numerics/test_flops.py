"""FLOPs of the operators, counted by torch's own counter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from ringlab.numerics import attend, attend_backward
from tests.numerics.cases import case

HEADS, BATCH, HEAD_DIM = 4, 2, 16


def counted(
    queries: int, keys: int, device: str, *, causal: bool = False, mask: Tensor | None = None
) -> tuple[int, int]:
    """Return the FLOPs of a forward and of a backward call."""
    sizes = {"batch": BATCH, "heads": HEADS, "head_dim": HEAD_DIM}
    q, k, v, dout = (x.to(device) for x in case(queries=queries, keys=keys, **sizes))
    with FlopCounterMode(display=False) as forward:
        done = attend(q, k, v, causal=causal, mask=mask)
    with FlopCounterMode(display=False) as backward:
        attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, mask=mask)
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
@pytest.mark.parametrize(
    ("queries", "keys"), [(7, 7), (7, 9), (9, 7), (1, 9), (9, 1), (0, 9), (9, 0)]
)
def test_four_d_h_times_the_pairs_and_two_and_a_half_times_that_in_backward(
    queries: int, keys: int, causal: bool, device: str
) -> None:
    pairs = sum(1 for i in range(queries) for j in range(keys) if j <= i or not causal)
    forward, backward = counted(queries, keys, device, causal=causal)
    assert forward == 4 * BATCH * HEADS * HEAD_DIM * pairs
    assert 2 * backward == 5 * forward


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_pairs_of_a_mask_are_counted_one_by_one(device: str) -> None:
    """Tokens may be on the meta device while the mask, which is small, holds numbers."""
    mask = torch.rand(7, 9) < 0.5
    forward, backward = counted(7, 9, device, mask=mask)
    assert forward == 4 * BATCH * HEADS * HEAD_DIM * int(mask.sum())
    assert 2 * backward == 5 * forward


def test_a_mask_without_numbers_counts_as_full() -> None:
    mask = torch.ones(7, 9, dtype=torch.bool, device="meta")
    assert counted(7, 9, "meta", mask=mask) == counted(7, 9, "meta")


def test_the_dense_count_is_that_of_the_two_matrix_products() -> None:
    q, k, v, _ = case(kv_heads=4)
    with FlopCounterMode(display=False) as products:
        (q @ k.transpose(2, 3)) @ v
    with FlopCounterMode(display=False) as ours:
        attend(q, k, v)
    assert ours.get_total_flops() == products.get_total_flops() > 0
