"""Closed forms of bytes against what ranks sent, rank by rank and hop by hop."""

from __future__ import annotations

import pytest
import torch

from ringlab import Contiguous, Interleaved, Layout, Striped, Timeline, World, ZigZag, cost
from ringlab.cost import Prefill, Traffic
from ringlab.prefill import all_gather_attention, ring_attention
from tests.prefill.cases import (
    Attend,
    Inputs,
    every_layout,
    every_size,
    forward,
    inputs,
    step,
)

FORWARD = {ring_attention: cost.ring_forward, all_gather_attention: cost.all_gather_forward}
BACKWARD = {ring_attention: cost.ring_backward, all_gather_attention: cost.all_gather_backward}
SHAPE = {"batch": 2, "kv_heads": 2, "head_dim": 4}


def call(layout: Layout, size: int, length: int, dtype: torch.dtype, causal: bool) -> Prefill:
    return Prefill(layout, size, length, dtype=dtype, causal=causal, **SHAPE)


def predicted(method: Attend, of: Prefill, *, asked: bool, backward: bool) -> Traffic:
    traffic = cost.handshake(of.world_size) if asked else Traffic(())
    traffic = traffic.then(FORWARD[method](of))
    return traffic.then(BACKWARD[method](of)) if backward else traffic


def recorded(method: Attend, of: Prefill, *, asked: bool, backward: bool, heads: int) -> Timeline:
    given = meta(inputs(of.length, heads=heads, dtype=of.dtype, **SHAPE))
    length = None if asked else of.length
    with World(of.world_size) as world:
        world.run(step if backward else forward, method, given, of.layout, causal=of.causal,
                  length=length)  # fmt: skip
        return world.timeline


def meta(given: Inputs) -> Inputs:
    """Tensors without data: what is sent does not depend on it."""
    return Inputs(*(x.to("meta") for x in given))


def assert_sent(timeline: Timeline, traffic: Traffic) -> None:
    for rank in range(timeline.world_size):
        assert timeline.hops(rank) == traffic.hops(rank), f"rank {rank}"
        assert timeline.bytes_sent(rank) == traffic.bytes_sent(rank)
        assert timeline.bytes_received(rank) == traffic.bytes_received(rank)


@pytest.mark.parametrize("method", [ring_attention, all_gather_attention])
@every_layout
@every_size
def test_each_hop_of_each_rank_sends_what_the_formula_says(
    method: Attend, layout: Layout, size: int
) -> None:
    dtype = (torch.float32, torch.bfloat16, torch.float64)[size % 3]
    for length, causal in [(23, size % 2 == 0), (3, size % 2 == 1), (23, True)]:
        of = call(layout, size, length, dtype, causal)
        timeline = recorded(method, of, asked=False, backward=True, heads=4)
        assert_sent(timeline, predicted(method, of, asked=False, backward=True))


@pytest.mark.parametrize("method", [ring_attention, all_gather_attention])
@pytest.mark.parametrize("size", [6, 7])
@pytest.mark.parametrize("backward", [False, True])
def test_the_formulas_hold_for_a_forward_alone_and_for_other_sizes(
    method: Attend, size: int, backward: bool
) -> None:
    of = call(ZigZag(), size, 29, torch.float16, False)
    timeline = recorded(method, of, asked=False, backward=backward, heads=2)
    assert_sent(timeline, predicted(method, of, asked=False, backward=backward))


@pytest.mark.parametrize("method", [ring_attention, all_gather_attention])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_asking_for_the_length_costs_64_bytes_to_each_other_rank(method: Attend, size: int) -> None:
    of = call(Contiguous(), size, 23, torch.float32, False)
    timeline = recorded(method, of, asked=True, backward=True, heads=2)
    assert_sent(timeline, predicted(method, of, asked=True, backward=True))
    assert cost.handshake(size).bytes_sent(0) == 64 * (size - 1)


def test_report_b9_traffic_follows_the_kv_heads_not_the_query_heads() -> None:
    of = call(ZigZag(), 4, 32, torch.float32, True)
    few, many = (
        recorded(ring_attention, of, asked=False, backward=True, heads=heads) for heads in (2, 16)
    )
    assert [few.hops(rank) for rank in range(4)] == [many.hops(rank) for rank in range(4)]


@pytest.mark.parametrize("layout", [Contiguous(), ZigZag(), Striped(), Interleaved(2)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("size", range(1, 9))
def test_equal_shards_send_w_minus_1_blocks_whatever_the_method(
    layout: Layout, dtype: torch.dtype, size: int
) -> None:
    of = call(layout, size, 16 * size, dtype, False)
    x = 2 * 2 * 2 * 16 * 4 * dtype.itemsize
    y = 2 * 2 * 2 * 16 * 4 * max(dtype.itemsize, 4)
    for rank in range(size):
        assert cost.ring_forward(of).hops(rank) == (x,) * (size - 1)
        assert cost.all_gather_forward(of).bytes_sent(rank) == (size - 1) * x
        for backward in (cost.ring_backward(of), cost.all_gather_backward(of)):
            assert backward.bytes_sent(rank) == (size - 1) * (x + y)


@pytest.mark.parametrize("size", range(3, 9))
def test_backward_hops_carry_blocks_first_then_both_then_gradients(size: int) -> None:
    of = call(Contiguous(), size, 16 * size, torch.bfloat16, False)
    x, y = of.kv_bytes(16), of.gradient_bytes(16)
    expected = (x, x, *[x + y] * (size - 3), y, y)
    for rank in range(size):
        assert cost.ring_backward(of).hops(rank) == expected


@pytest.mark.parametrize("size", range(1, 9))
def test_claim_c29_contiguous_causal_sends_half_and_nothing_on_the_wrap_link(size: int) -> None:
    of = call(Contiguous(), size, 5 * size, torch.float32, True)
    x = of.kv_bytes(5)
    traffic = cost.ring_forward(of)
    assert traffic.total() == size * (size - 1) // 2 * x
    assert [traffic.bytes_received(rank) for rank in range(size)] == [r * x for r in range(size)]
    assert (size - 1, 0) not in traffic.edges()


@pytest.mark.parametrize("size", range(2, 9))
def test_claim_c30_balanced_layouts_save_no_hop(size: int) -> None:
    for layout in (ZigZag(), Striped()):
        of = call(layout, size, 4 * size, torch.float32, True)
        assert cost.ring_forward(of).total() == size * (size - 1) * of.kv_bytes(4)


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_claim_c12_ragged_shards_receive_all_but_their_own(size: int) -> None:
    of = call(Contiguous(), size, 29, torch.float32, False)
    traffic, everything = cost.ring_forward(of), of.kv_bytes(29)
    for rank in range(size):
        following = (rank + 1) % size
        assert traffic.bytes_received(rank) == everything - of.kv_bytes(of.tokens(rank))
        assert traffic.bytes_sent(rank) == everything - of.kv_bytes(of.tokens(following))


def test_claims_c1_c12_llama_3_70b_at_128k_in_all_layers() -> None:
    sent = {
        size: 80 * cost.ring_forward(
            Prefill(ZigZag(), size, 131072, 1, 8, 128, torch.bfloat16)
        ).bytes_sent(0)
        for size in (2, 4, 8, 16)
    }  # fmt: skip
    assert {size: round(total / 1e9, 2) for size, total in sent.items()} == {
        2: 21.47, 4: 32.21, 8: 37.58, 16: 40.27
    }  # fmt: skip


def test_traffic_adds_up_launch_after_launch() -> None:
    first, second = cost.handshake(3), cost.handshake(3)
    both = first.then(second)
    assert both.hops(1) == (128, 128)
    assert both.edges() == {(0, 1): 256, (1, 2): 256, (2, 0): 256}
    assert cost.handshake(1).messages == ()
