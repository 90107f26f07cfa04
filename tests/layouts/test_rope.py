from __future__ import annotations

import math

import pytest
import torch

from ringlab.layout import Contiguous, Layout, ZigZag
from ringlab.rope import apply_rope, rope_angles
from tests.layouts.cases import EVERY_LAYOUT, own_positions

every_layout = pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=str)


def turned_in_the_plane(x: torch.Tensor, positions: list[int], base: float) -> torch.Tensor:
    """Channels i and i + D/2 as one complex number, turned by a complex factor, in float64."""
    half = x.shape[-1] // 2
    plane = torch.complex(x[..., :half].double(), x[..., half:].double())  # [B, H, L, D/2]
    factors = [
        [
            complex(math.cos(p * f), math.sin(p * f))
            for f in (base ** (-i / half) for i in range(half))
        ]
        for p in positions
    ]
    turned = plane * torch.tensor(factors, dtype=torch.complex128).reshape(len(positions), half)
    return torch.cat((turned.real, turned.imag), dim=-1)


@every_layout
@pytest.mark.parametrize(("world_size", "length"), [(1, 7), (3, 31), (4, 3), (5, 64), (8, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_a_rotated_shard_is_the_shard_of_the_rotated_whole_to_the_bit(
    layout: Layout, world_size: int, length: int, dtype: torch.dtype
) -> None:
    x = torch.randn(2, 3, length, 6, dtype=dtype)
    whole = apply_rope(x, torch.arange(length))
    for rank in range(world_size):
        positions = layout.positions(rank, world_size, length)
        shard = apply_rope(x[:, :, own_positions(layout, rank, world_size, length)], positions)
        assert torch.equal(shard, layout.shard(whole, rank, world_size))


def test_report_e1_local_positions_would_rotate_a_shard_wrongly() -> None:
    x = torch.randn(1, 2, 16, 4)
    shard = ZigZag().shard(x, 1, 2)
    right = ZigZag().shard(apply_rope(x, torch.arange(16)), 1, 2)
    assert torch.equal(apply_rope(shard, ZigZag().positions(1, 2, 16)), right)
    assert not torch.allclose(apply_rope(shard, torch.arange(8)), right, atol=0.1)


@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_rotation_is_that_of_complex_numbers(base: float) -> None:
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    positions = [0, 3, 4, 1000, 131_071]
    turned = apply_rope(x, torch.tensor(positions), base=base)
    # One rounding of an angle of 131071 radians is 1.5e-11.
    torch.testing.assert_close(turned, turned_in_the_plane(x, positions, base), rtol=0, atol=1e-9)


def test_position_zero_changes_nothing() -> None:
    x = torch.randn(1, 2, 1, 4)
    assert torch.equal(apply_rope(x, torch.tensor([0])), x)


def test_a_quarter_turn_pairs_a_channel_with_the_one_half_a_head_away() -> None:
    x = torch.tensor([1.0, 0.0, 0.0, 0.0]).reshape(1, 1, 1, 4)
    [first, second, third, fourth] = apply_rope(x, torch.tensor([1])).flatten().tolist()
    assert (first, third) == pytest.approx((math.cos(1), math.sin(1)))
    assert (second, fourth) == (0, 0)


def test_scores_depend_on_distance_and_not_on_position() -> None:
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64).expand(2, 1, 1, 4, 8)
    positions = torch.tensor([0, 5, 100, 4000])
    scores = (apply_rope(q, positions + 3) * apply_rope(k, positions)).sum(-1)
    torch.testing.assert_close(scores, scores[..., :1].expand(1, 1, 4), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("dtype", "bound"),
    [(torch.float32, 2e-4), (torch.bfloat16, 2**-7), (torch.float16, 2**-10)],
    ids=str,
)
def test_arithmetic_is_float32_and_only_the_result_is_rounded(
    dtype: torch.dtype, bound: float
) -> None:
    x = torch.randn(1, 2, 3, 8).clamp(-1, 1).to(dtype)
    positions = [1, 2000, 4001]  # a 16-bit angle of 4001 radians would be off by whole radians
    turned = apply_rope(x, torch.tensor(positions))
    assert turned.dtype == dtype
    exact = turned_in_the_plane(x, positions, 10000.0)
    assert (turned.double() - exact).abs().max() < bound


def test_float32_tokens_far_into_a_sequence_meet_float32_angles() -> None:
    angles = rope_angles(torch.tensor([0, 1, 131_071]), 8)
    assert (angles.dtype, angles.shape) == (torch.float32, (3, 4))
    exact = [[p * 10000.0 ** (-i / 4) for i in range(4)] for p in (0, 1, 131_071)]
    torch.testing.assert_close(angles, torch.tensor(exact), rtol=3e-7, atol=0)


def test_autocast_does_not_round_the_angles() -> None:
    x, positions = torch.randn(1, 2, 4, 8), torch.tensor([7, 4001, 8000, 131_071])
    plain = apply_rope(x, positions)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(apply_rope(x, positions), plain)


def test_gradients_are_turned_back() -> None:
    x = torch.randn(2, 1, 3, 6, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 1, 3, 6, dtype=torch.float64)
    positions = [2, 50, 77]
    (apply_rope(x, torch.tensor(positions)) * weights).sum().backward()
    assert x.grad is not None
    back = turned_in_the_plane(weights, [-p for p in positions], 10000.0)
    torch.testing.assert_close(x.grad, back, rtol=0, atol=1e-12)


def test_strided_inputs_and_ranks_without_tokens_are_fine() -> None:
    x = torch.randn(2, 5, 3, 4).transpose(1, 2)  # [B, H, L, D]
    positions = torch.arange(5)
    assert torch.equal(apply_rope(x, positions), apply_rope(x.contiguous(), positions))
    empty = Contiguous().positions(3, 4, 2)
    assert apply_rope(x[:, :, :0], empty).shape == (2, 3, 0, 4)


def test_meta_tensors_are_rotated_by_shape() -> None:
    x = torch.empty(2, 3, 5, 4, device="meta", dtype=torch.bfloat16)
    turned = apply_rope(x, torch.arange(5))
    assert (turned.shape, turned.dtype, turned.device) == (x.shape, x.dtype, x.device)


@pytest.mark.parametrize(
    ("x", "positions", "said"),
    [
        (torch.zeros(1, 2, 4, 6), torch.arange(5), r"holds 4 tokens, but positions have shape"),
        (torch.zeros(1, 2, 4, 6), torch.zeros(1, 4).long(), "positions have shape"),
        (torch.zeros(1, 2, 4, 5), torch.arange(4), "head_dim is even, 2 or more; got 5"),
        (torch.zeros(1, 2, 4, 0), torch.arange(4), "head_dim is even, 2 or more; got 0"),
        (torch.zeros(1, 2, 4, 6), torch.zeros(4), r"integers of shape \[L\]"),
        (torch.zeros(2, 4, 6), torch.arange(4), r"floating point of shape \[B, H, L, D\]"),
        (torch.zeros(1, 2, 4, 6).long(), torch.arange(4), "floating point"),
    ],
    ids=["count", "batch", "odd", "empty head", "float", "no batch", "integers"],
)
def test_what_cannot_be_rotated_is_refused(
    x: torch.Tensor, positions: torch.Tensor, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        apply_rope(x, positions)
