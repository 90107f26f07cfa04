"""Regions: labels on events, for each virtual rank its own, and nothing where nothing records."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.distributed as dist

from ringlab import World, ZigZag, ring_attention
from ringlab.timeline import current_label, region


def test_the_innermost_region_is_the_label():
    assert current_label() == ""
    with region("outer"):
        with region("inner"):
            assert current_label() == "inner"
        assert current_label() == "outer"
    assert current_label() == ""


def test_a_region_ends_with_an_exception():
    with pytest.raises(KeyError), region("failing"):
        raise KeyError
    assert current_label() == ""


def test_a_region_belongs_to_its_thread():
    seen = []
    with region("here"):
        thread = threading.Thread(target=lambda: seen.append(current_label()))
        thread.start()
        thread.join()
    assert seen == [""]


def labelled():
    x = torch.ones(2)
    with region(f"part of rank {dist.get_rank()}"):
        dist.all_reduce(x)
    dist.barrier()


def test_virtual_ranks_have_labels_of_their_own():
    with World(3) as world:
        world.run(labelled)
        for rank in range(3):
            labels = {e.name: e.label for e in world.timeline.of(rank) if e.kind != "compute"}
            assert labels == {"all_reduce": f"part of rank {rank}", "barrier": ""}


def ring(x):
    shard = ZigZag().shard(x, dist.get_rank(), dist.get_world_size()).requires_grad_()
    out = ring_attention(shard, shard, shard, layout=ZigZag(), causal=True, length=x.shape[2])
    out.backward(torch.ones_like(out))


def test_the_library_labels_attending_merging_and_copying():
    with World(3) as world:
        world.run(ring, torch.randn(1, 2, 24, 8))
        labels = {(e.name, e.label) for e in world.timeline if e.kind == "compute"}
    by_name = {name: {label for other, label in labels if other == name} for name, _ in labels}
    assert by_name["ringlab::attend"] == by_name["ringlab::attend_backward"] == {"attend"}
    assert {label for _, label in labels} >= {"attend", "merge", "copy"}


def test_a_region_shows_in_torchs_profiler():
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with profiler as profile, region("seen by the profiler"):
        torch.ones(1)
    assert "seen by the profiler" in {event.name for event in profile.events()}


def test_a_region_does_not_break_the_graph_of_compiled_code():
    def double(x):
        with region("inside"):
            return x * 2

    compiled = torch.compile(double, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [2, 2]
