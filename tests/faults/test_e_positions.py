"""E: what depends on a token's place follows its global position, also labels and losses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import pytest
import torch
import torch.distributed as dist
from hypothesis import strategies as st
from torch import Tensor

from ringlab import Contiguous, Layout, World, ZigZag, apply_rope
from tests import oracle
from tests.faults.drawn import layouts, lengths, methods, search, sizes, two_tiers
from tests.layouts.cases import own_positions
from tests.prefill.cases import (
    Attend,
    Inputs,
    assert_exact,
    every_layout,
    every_method,
    inputs,
    run,
)


@dataclass(frozen=True)
class Places:
    """A layout, and a loss that counts some of the tokens."""

    layout: Layout
    size: int
    length: int
    method: Attend
    ignored: float
    seed: int


places = st.builds(
    Places,
    layout=layouts,
    size=sizes,
    length=lengths,
    method=methods,
    ignored=st.sampled_from([0.0, 0.5, 0.9]),
    seed=st.integers(0, 2**31),
)


def rotated(method: Attend, given: Inputs, valid: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """The rank's share of the mean of a loss over the valid tokens, and the gradient of q."""
    place = dist.get_rank(), dist.get_world_size()
    length = given.q.shape[2]
    positions = layout.positions(*place, length)
    q, k, v, weight = (layout.shard(x, *place) for x in given)
    q.requires_grad_()
    turned = (apply_rope(x, positions) for x in (q, k))
    out = method(*turned, v, layout=layout, causal=True)
    counted = layout.shard(valid, *place, dim=-1)
    total = counted.sum()
    dist.all_reduce(total)
    loss = ((out * weight).square().sum((0, 1, 3)) * counted).sum() / total.clamp(min=1)
    loss.backward()
    return loss.detach(), q.grad


def alone(given: Inputs, valid: Tensor) -> tuple[Tensor, Tensor]:
    """The same on one device, with attention by its definition."""
    q = given.q.clone().requires_grad_()
    positions = torch.arange(q.shape[2])
    turned, keys = (apply_rope(x, positions) for x in (q, given.k))
    exact = oracle.attention(turned, keys, given.v, causal=True)
    weight = given.dout.square() * valid[:, None] / valid.sum().clamp(min=1)
    upstream = 2 * exact.out * weight
    (dq,) = torch.autograd.grad(
        turned, q, oracle.attention(turned, keys, given.v, upstream, causal=True).dq
    )
    return (exact.out.square() * weight).sum(), dq


def check_places(drawn: Places) -> None:
    layout, place = drawn.layout, (drawn.size, drawn.length)
    found = [layout.positions(rank, *place).tolist() for rank in range(drawn.size)]
    assert found == [own_positions(layout, rank, *place) for rank in range(drawn.size)]
    assert sorted(chain.from_iterable(found)) == list(range(drawn.length))
    draw = torch.Generator().manual_seed(drawn.seed)
    valid = (torch.rand(drawn.length, generator=draw) >= drawn.ignored).double()
    given = inputs(drawn.length, batch=1, heads=4, kv_heads=2, head_dim=6, seed=drawn.seed)
    shares = World(drawn.size).run(rotated, drawn.method, given, valid, layout)
    loss, dq = alone(given, valid)
    torch.testing.assert_close(sum(share for share, _ in shares), loss, rtol=1e-11, atol=1e-11)
    mine = layout.unshard([gradient for _, gradient in shares])
    torch.testing.assert_close(mine, dq, rtol=1e-11, atol=1e-11)


@two_tiers(few=15, many=150)
def test_rotation_mask_and_loss_of_any_shards_are_those_of_the_whole(examples: int) -> None:
    search(places, check_places, examples)


@every_layout
@pytest.mark.parametrize("size", [1, 3, 4])
def test_report_e3_positions_of_several_axes_are_sharded_along_the_sequence(
    layout: Layout, size: int
) -> None:
    ids = torch.arange(3 * 2 * 13).view(3, 2, 13)  # time, height, width; B; L
    parts = [layout.shard(ids, rank, size, dim=-1) for rank in range(size)]
    for rank, part in enumerate(parts):
        assert torch.equal(part, ids[:, :, own_positions(layout, rank, size, 13)])
    assert torch.equal(layout.unshard(parts, dim=-1), ids)
    with pytest.raises(ValueError, match="no dimension 3"):
        layout.shard(ids, 0, size, dim=3)


@every_method
def test_report_e4_positions_are_never_guessed_and_packing_that_resets_them_is_refused(
    method: Attend,
) -> None:
    x = torch.zeros(1, 2, 3, 4)
    with pytest.raises(TypeError, match="positions"):
        apply_rope(x)
    with pytest.raises(ValueError, match="holds 3 tokens, but positions have shape"):
        apply_rope(x, torch.arange(12))
    with pytest.raises(TypeError, match="has no argument 'position_ids'"):
        method(x, x, x, position_ids=torch.tensor([0, 1, 0]))
    with pytest.raises(NotImplementedError, match="packed documents"):
        method(x, x, x, document_ids=torch.tensor([0, 0, 1]))


@every_method
def test_report_e12_the_comparison_itself_fails_when_the_merge_is_broken(
    method: Attend, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringlab.numerics import merge

    given = inputs(16)
    assert_exact(run(method, given, 3, ZigZag(), causal=True), given, causal=True)
    right = merge._fused

    def wrong(state: merge.State, other: merge.State, into: merge.State) -> None:
        right(state, (other[0], other[1] + 1e-6), into)

    monkeypatch.setattr(merge, "_fused", wrong)
    with pytest.raises(AssertionError, match="out"):
        assert_exact(run(method, given, 3, Contiguous()), given, causal=False)
