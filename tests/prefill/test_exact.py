"""The numbers of both methods, on every rank, against float64 attention on one device."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from ringlab import Contiguous, Interleaved, Layout, Striped, World, ZigZag
from ringlab.prefill.all_gather import AllGather
from ringlab.prefill.method import Method
from ringlab.prefill.plan import make_plan
from ringlab.prefill.ring import Ring
from tests import oracle
from tests.layouts.cases import layouts
from tests.prefill.cases import (
    METHODS,
    Attend,
    Inputs,
    assert_exact,
    every_layout,
    every_method,
    every_size,
    inputs,
    masked_or_not,
    run,
)


@every_method
@every_layout
@every_size
def test_report_b1_results_and_gradients_are_those_of_one_device(
    method: Attend, layout: Layout, size: int
) -> None:
    for causal in (False, True):
        given = inputs(29, seed=size)
        assert_exact(run(method, given, size, layout, causal=causal), given, causal=causal)


@every_method
@every_layout
@pytest.mark.parametrize(
    ("length", "causal"), [(0, True), (1, True), (3, True), (3, False), (7, True)]
)
def test_report_c4_c6_sequences_shorter_than_twice_the_ranks(
    method: Attend, layout: Layout, length: int, causal: bool
) -> None:
    given = inputs(length)
    assert_exact(run(method, given, 5, layout, causal=causal), given, causal=causal)


@every_method
@masked_or_not
@pytest.mark.parametrize("heads", [(8, 1), (8, 2), (8, 8), (6, 3), (1, 1)], ids=str)
def test_report_b8_query_heads_share_kv_heads(
    method: Attend, causal: bool, heads: tuple[int, int]
) -> None:
    given = inputs(17, heads=heads[0], kv_heads=heads[1], head_dim=12)
    assert_exact(run(method, given, 3, ZigZag(), causal=causal), given, causal=causal)


@every_method
@every_layout
def test_report_c2_c10_prime_lengths_on_seven_ranks(method: Attend, layout: Layout) -> None:
    given = inputs(53, batch=1)
    assert_exact(run(method, given, 7, layout, causal=True), given, causal=True)


@every_method
@pytest.mark.parametrize("length", [257, 1030])
def test_tiles_with_masks_and_without_meet_in_one_block(method: Attend, length: int) -> None:
    """Blocks large enough that a staircase becomes full, diagonal and masked tiles."""
    given = inputs(length, batch=1, heads=2, kv_heads=1, head_dim=4)
    assert_exact(run(method, given, 3, Interleaved(50), causal=True), given, causal=True)


@every_method
@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_report_b11_several_blocks_on_each_rank_under_a_causal_mask(
    method: Attend, blocks: int
) -> None:
    given = inputs(3 * 4 * blocks, batch=1)
    assert_exact(run(method, given, 3, Interleaved(4), causal=True), given, causal=True)


@every_method
def test_report_a1_a2_scores_whose_exponential_would_overflow(method: Attend) -> None:
    given = inputs(16)
    exact = oracle.attention(*given, scale=100.0)
    assert exact.lse.max() > 709
    found = run(method, given, 4, ZigZag(), scale=100.0)
    for name, tensor in found._asdict().items():
        torch.testing.assert_close(tensor, getattr(exact, name), rtol=1e-10, atol=1e-10)


@every_method
def test_the_length_may_be_given_or_asked_for(method: Attend) -> None:
    given = inputs(19)
    for length in (None, 19):
        found = run(method, given, 4, Striped(), causal=True, length=length)
        assert_exact(found, given, causal=True)


@every_method
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_the_scale_of_the_scores_is_free(method: Attend, scale: float) -> None:
    given = inputs(13)
    found = run(method, given, 3, Contiguous(), causal=True, scale=scale)
    assert_exact(found, given, causal=True, scale=scale)


@settings(max_examples=15)
@drawn(
    method=st.sampled_from(METHODS),
    layout=layouts,
    size=st.integers(1, 5),
    length=st.integers(0, 60),
    causal=st.booleans(),
    batch=st.integers(1, 3),
    kv_heads=st.integers(1, 3),
    group=st.integers(1, 3),
    head_dim=st.integers(1, 9),
)
def test_any_shape_in_any_layout_is_exact(
    method: Attend,
    layout: Layout,
    size: int,
    length: int,
    causal: bool,
    batch: int,
    kv_heads: int,
    group: int,
    head_dim: int,
) -> None:
    given = inputs(
        length, batch=batch, heads=kv_heads * group, kv_heads=kv_heads, head_dim=head_dim
    )
    assert_exact(run(method, given, size, layout, causal=causal), given, causal=causal)


def lse_of(method: Method, given: Inputs, layout: Layout, causal: bool) -> Tensor:
    """The LSE that a rank saves for its backward."""
    q, k, v = (layout.shard(x, dist.get_rank(), dist.get_world_size()) for x in given[:3])
    plan = make_plan(method.name, q, k, layout=layout, causal=causal, scale=None, kernel=None,
                     length=None, group=None, gradients=False)  # fmt: skip
    return method.forward(q, k, v, plan)[1]


@pytest.mark.parametrize("method", [Ring, AllGather])
@every_layout
@masked_or_not
def test_the_final_lse_is_that_of_one_device(method: Method, layout: Layout, causal: bool) -> None:
    given = inputs(23)
    parts = World(4).run(lse_of, method, given, layout, causal)
    found = layout.unshard(parts, dim=-1)
    exact = oracle.attention(*given, causal=causal).lse
    torch.testing.assert_close(found, exact, rtol=1e-12, atol=1e-12)


@every_method
@every_layout
def test_outputs_before_a_token_do_not_depend_on_it(method: Attend, layout: Layout) -> None:
    given = inputs(31, dtype=torch.float32)
    before = run(method, given, 4, layout, causal=True)
    for token in (0, 13, 30):
        k, v = given.k.clone(), given.v.clone()
        k[:, :, token] += 3.0
        v[:, :, token] -= 5.0
        after = run(method, given._replace(k=k, v=v), 4, layout, causal=True)
        assert torch.equal(before.out[:, :, :token], after.out[:, :, :token])
        assert not torch.isclose(before.out[:, :, token:], after.out[:, :, token:]).all(-1).any()
