"""What a rank holds: two blocks beside its own, and nothing foreign between the passes."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Contiguous, Layout, World, ZigZag
from ringlab.meter import PeakBytes
from ringlab.prefill import all_gather_attention, ring_attention
from tests.prefill.cases import Attend, Inputs, every_method, inputs

SHARD = 64  # tokens on each rank
HEADS, HEAD_DIM = 2, 16


class Held(NamedTuple):
    """Bytes of the tensors made in a pass: the most at one time, and what is left after it."""

    forward_peak: int
    forward_left: int
    backward_peak: int
    backward_left: int


def problem(size: int, *, dtype: torch.dtype = torch.float32, shard: int = SHARD) -> Inputs:
    given = inputs(size * shard, batch=1, heads=HEADS, kv_heads=HEADS, head_dim=HEAD_DIM,
                   dtype=dtype)  # fmt: skip
    return Inputs(*(x.to("meta") for x in given))


def measured(method: Attend, given: Inputs, layout: Layout) -> Held:
    """A step on `meta` tensors, where nothing but the method itself holds anything."""
    place = dist.get_rank(), dist.get_world_size()
    q, k, v, dout = (layout.shard(x, *place) for x in given)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    with PeakBytes() as there:
        out = method(*leaves, layout=layout, causal=True, length=given.q.shape[2])
    left = there.live
    with PeakBytes() as back:
        grads = torch.autograd.grad(out, leaves, dout)
    assert len(grads) == 3
    return Held(there.peak, left, back.peak, back.live)


def kv_bytes(dtype: torch.dtype, shard: int = SHARD) -> int:
    return 2 * HEADS * shard * HEAD_DIM * dtype.itemsize


def state_bytes() -> int:
    """A float32 out and a float64 lse."""
    return HEADS * SHARD * (4 * HEAD_DIM + 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", [Contiguous(), ZigZag()], ids=str)
def test_claim_c17_forward_holds_two_blocks_and_two_states_whatever_the_ranks(
    layout: Layout, dtype: torch.dtype
) -> None:
    limit = 2 * kv_bytes(dtype) + 2 * state_bytes()
    for size in (2, 3, 8):
        held = World(size).run(measured, ring_attention, problem(size, dtype=dtype), layout)
        assert max(rank.forward_peak for rank in held) <= limit


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_backward_holds_as_much_at_eight_ranks_as_at_three(dtype: torch.dtype) -> None:
    few, many = (
        World(size).run(measured, ring_attention, problem(size, dtype=dtype), ZigZag())
        for size in (3, 8)
    )
    x, y = kv_bytes(dtype), kv_bytes(torch.float32)
    # Two parcels, the own dK and dV, the share of a block with its tiles, dq and a tile's dq.
    limit = 2 * (x + y) + y + 2 * y + y
    assert max(rank.backward_peak for rank in many) == max(rank.backward_peak for rank in few)
    assert max(rank.backward_peak for rank in many) <= limit


def test_claim_c16_all_gather_holds_the_blocks_of_all_ranks() -> None:
    peaks = {
        size: max(
            rank.forward_peak
            for rank in World(size).run(measured, all_gather_attention, problem(size), ZigZag())
        )
        for size in (4, 8)
    }
    assert peaks[8] - peaks[4] == 4 * kv_bytes(torch.float32)


@every_method
def test_twice_the_tokens_take_twice_the_memory(method: Attend) -> None:
    for short, long in zip(
        World(3).run(measured, method, problem(3), ZigZag()),
        World(3).run(measured, method, problem(3, shard=2 * SHARD), ZigZag()),
        strict=True,
    ):
        assert long.forward_peak == 2 * short.forward_peak
        assert long.backward_peak == 2 * short.backward_peak


@every_method
def test_one_rank_alone_holds_no_buffer(method: Attend) -> None:
    (held,) = World(1).run(measured, method, problem(1), ZigZag())
    assert held.forward_peak == state_bytes()
    assert held.backward_peak == 3 * HEADS * SHARD * HEAD_DIM * 4  # dq, dk and dv


@every_method
def test_between_the_passes_only_the_rank_s_own_tensors_are_kept(method: Attend) -> None:
    for held in World(4).run(measured, method, problem(4), ZigZag()):
        assert held.forward_left == state_bytes()
        assert held.backward_left == 3 * HEADS * SHARD * HEAD_DIM * 4


def saved(method: Attend, given: Inputs) -> list[tuple[int, ...]]:
    """Shapes of what autograd keeps; q, k and v are kept as they are and not as copies."""
    place = dist.get_rank(), dist.get_world_size()
    leaves = [ZigZag().shard(x, *place).requires_grad_() for x in given[:3]]
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        out = method(*leaves, layout=ZigZag(), causal=True)
    pointers = {x.data_ptr() for x in kept}
    assert {x.data_ptr() for x in (*leaves, out)} <= pointers
    return [tuple(x.shape) for x in kept]


@every_method
def test_report_b2_autograd_saves_q_k_v_out_and_lse_of_the_rank(method: Attend) -> None:
    given = inputs(24, batch=2, heads=6, kv_heads=3, head_dim=10)
    shapes = [(2, 6, 6, 10), (2, 3, 6, 10), (2, 3, 6, 10), (2, 6, 6, 10), (2, 6, 6)]
    assert World(4).run(saved, method, given) == [shapes] * 4
