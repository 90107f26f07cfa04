"""Pictures of the library's own ring: recorded, priced, and beside its formula."""

import pytest
import torch

from ringlab import World, ZigZag, ring_attention
from ringlab.cost import Prefill, ring_forward
from ringlab.draw import draw_hops, draw_ring_strip, draw_timeline, play
from ringlab.price import price

SIZE, LENGTH = 3, 3 * 4096


def run_ring():
    q, k, v = (
        torch.empty(1, 8, LENGTH // SIZE, 64, dtype=torch.bfloat16, device="meta") for _ in range(3)
    )
    ring_attention(q, k, v, layout=ZigZag(), causal=True, length=LENGTH)


@pytest.fixture(scope="module")
def recording():
    world = World(SIZE)
    world.run(run_ring)
    return world.timeline


def test_hops_end_where_the_formula_puts_them(recording):
    call = Prefill(ZigZag(), SIZE, LENGTH, 1, 8, 64, torch.bfloat16, causal=True)
    picture = draw_hops(recording, ring_forward(call).hops(1), rank=1)
    assert "Every bar ends where its formula puts it" in picture.alt


def test_every_priced_event_that_lasts_is_a_bar(recording):
    priced = price(recording, "8x h100-nvlink")
    lasting = {n for n, e in enumerate(priced) if e.end > e.start}
    assert {bar["id"] for bar in play(priced).data["bars"]} == lasting
    assert draw_timeline(priced).figure.axes[0].get_xlabel().startswith("time (")


def test_the_recording_is_drawn_by_step(recording):
    picture = draw_timeline(recording)
    assert f"{SIZE} ranks, {SIZE} steps, {SIZE * (SIZE - 1)} messages" in (
        picture.figure.axes[0].get_title()
    )
    assert draw_ring_strip(recording).alt.startswith("A ring of 3 ranks in 2 hops")
