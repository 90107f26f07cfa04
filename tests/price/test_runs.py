"""Recordings of the virtual world, priced."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from ringlab import Contiguous, Interleaved, Layout, Striped, World, ZigZag
from ringlab.layout.tiles import work
from ringlab.operators import UnpricedOperator
from ringlab.prefill import all_gather_attention, ring_attention
from ringlab.price import price, price_layers
from ringlab.timeline import Timeline

LAYOUTS = [Contiguous(), ZigZag(), Striped()]
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: type(x).__name__)
every_method = pytest.mark.parametrize("method", [ring_attention, all_gather_attention],
                                       ids=lambda m: m.__name__)  # fmt: skip


def program(
    layout: Layout,
    length: int,
    causal: bool,
    *,
    method: Callable[..., torch.Tensor] = ring_attention,
    backward: bool = False,
    device: str = "meta",
    layers: int = 1,
) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = layout.local_length(rank, size, length)
    dtype = torch.bfloat16
    for _ in range(layers):
        q = torch.empty(2, 6, mine, 16, dtype=dtype, device=device, requires_grad=backward)
        k, v = (torch.empty(2, 3, mine, 16, dtype=dtype, device=device, requires_grad=backward)
                for _ in range(2))  # fmt: skip
        out = method(q, k, v, layout=layout, causal=causal, length=length)
        if backward:
            out.backward(torch.empty_like(out))


def record(size: int, *args: object, **options: object) -> Timeline:
    with World(size) as world:
        world.run(program, *args, **options)
        return world.timeline


def flops(recording: Timeline, rank: int, kind: str) -> int:
    return sum(
        e.work.flops for e in recording.of(rank, "compute") if e.work and e.work.kind == kind
    )


@every_method
@every_layout
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("size", "length"), [(1, 37), (3, 101), (4, 64), (5, 3)])
def test_the_flops_priced_are_those_of_the_pairs_that_the_layout_allows(
    method: Callable[..., torch.Tensor], layout: Layout, causal: bool, size: int, length: int
) -> None:
    recording = record(size, layout, length, causal, method=method, backward=True)
    for rank, row in enumerate(work(layout, size, length, causal=causal)):
        forward = 4 * 16 * 6 * 2 * sum(row)
        assert flops(recording, rank, "attention") == forward
        assert flops(recording, rank, "attention backward") == 5 * forward // 2


def test_the_pairs_of_a_mask_are_counted_where_it_has_data() -> None:
    layout = Interleaved(3)
    recording = record(3, layout, 101, True, device="cpu")
    for rank, row in enumerate(work(layout, 3, 101, causal=True)):
        assert flops(recording, rank, "attention") == 4 * 16 * 6 * 2 * sum(row)


def test_a_world_prices_its_last_run() -> None:
    with World(4) as world:
        world.run(program, ZigZag(), 4096, True)
        priced = world.price("8x h100-nvlink")
        assert priced == price(world.timeline, "8x h100-nvlink")
        assert all(event.start is not None for event in priced)


def test_only_a_virtual_world_can_be_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1)
    monkeypatch.setattr(world, "backend", "gloo")
    with pytest.raises(ValueError, match="recording of a virtual world; this one is 'gloo'"):
        world.price("8x h100-nvlink")


def test_an_operator_without_a_formula_is_never_free() -> None:
    with World(1) as world:
        world.run(lambda: torch.linalg.svdvals(torch.ones(3, 3)))
        with pytest.raises(UnpricedOperator, match="_linalg_svd"):
            world.price("8x h100-nvlink")


@every_layout
def test_layers_cost_what_a_recording_of_all_of_them_costs(layout: Layout) -> None:
    one = record(4, layout, 8192, False)
    five = record(4, layout, 8192, False, layers=5)
    layers = price_layers(one, "4x h100-nvlink", 5)
    priced = price(five, "4x h100-nvlink")
    assert layers.seconds == max(event.end or 0.0 for event in priced)
    assert layers.first == price(one, "4x h100-nvlink")
    assert layers.simulated < 5


def test_layers_whose_ranks_drift_apart_are_simulated_one_by_one() -> None:
    one = record(4, Contiguous(), 8192, True)
    five = record(4, Contiguous(), 8192, True, layers=5)
    layers = price_layers(one, "4x h100-nvlink", 5)
    assert layers.seconds == max(e.end or 0.0 for e in price(five, "4x h100-nvlink"))
    with pytest.raises(ValueError, match="at least once"):
        price_layers(one, "4x h100-nvlink", 0)


def test_zigzag_beats_contiguous_under_a_causal_mask_and_comes_near_to_half() -> None:
    seconds = {}
    for layout in LAYOUTS:
        recording = record(8, layout, 1 << 18, True)
        seconds[type(layout).__name__] = price_layers(recording, "8x h100-nvlink", 1).seconds
    assert 0.5 < seconds["ZigZag"] / seconds["Contiguous"] < 0.65
    assert seconds["ZigZag"] < seconds["Striped"] < seconds["Contiguous"]


def test_a_slow_network_exposes_the_ring_and_long_shards_hide_it() -> None:
    from ringlab.timeline import lost_time

    def waiting(length: int) -> float:
        priced = price(record(16, ZigZag(), length, True), "2x8 h100-eth100")
        return lost_time(priced).communication / lost_time(priced).useful

    assert waiting(1 << 22) < 0.01 < 1 < waiting(1 << 14)
