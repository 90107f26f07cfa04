"""On `meta` tensors: shapes and messages without data, so that large worlds fit a laptop."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist

from ringlab import Layout, World, ZigZag, cost
from ringlab.prefill import ring_attention
from tests.prefill.cases import Attend, Inputs, every_layout, every_method, inputs, step


@every_method
@every_layout
def test_report_i6_with_a_length_no_step_reads_data(method: Attend, layout: Layout) -> None:
    """A value that is read on the host, a mask count or an `.item()`, would raise here."""
    given = Inputs(*(x.to("meta") for x in inputs(23)))
    for rank, found in enumerate(World(4).run(step, method, given, layout, causal=True, length=23)):
        mine = layout.local_length(rank, 4, 23)
        assert {x.device.type for x in found} == {"meta"}
        assert [tuple(x.shape) for x in found] == [
            (2, 6, mine, 10), (2, 6, mine, 10), (2, 3, mine, 10), (2, 3, mine, 10)
        ]  # fmt: skip


@every_method
def test_the_same_messages_are_sent_with_data_and_without(method: Attend) -> None:
    given = inputs(23)
    recorded = []
    for device in ("cpu", "meta"):
        with World(3) as world:
            world.run(step, method, Inputs(*(x.to(device) for x in given)), ZigZag(), causal=True)
            recorded.append([event._replace(site="") for event in world.timeline])
    assert recorded[0] == recorded[1]


def million(layout: Layout) -> None:
    length = 1 << 20
    local = layout.local_length(dist.get_rank(), dist.get_world_size(), length)
    q = torch.empty(1, 64, local, 128, dtype=torch.bfloat16, device="meta")
    k = torch.empty(1, 8, local, 128, dtype=torch.bfloat16, device="meta")
    ring_attention(q, k, k, layout=layout, causal=True, length=length)


@pytest.mark.slow
def test_a_million_tokens_on_128_ranks_take_seconds() -> None:
    start = time.perf_counter()
    with World(128) as world:
        world.run(million, ZigZag())
        sent = world.timeline.bytes_sent(77)
    assert time.perf_counter() - start < 50  # usually under 10 on two idle cores
    call = cost.Prefill(ZigZag(), 128, 1 << 20, 1, 8, 128, torch.bfloat16, causal=True)
    assert sent == 127 * call.kv_bytes((1 << 20) // 128)
