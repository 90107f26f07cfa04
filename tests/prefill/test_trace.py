"""What the ring asks of torch.distributed, in which order, and with which buffers."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from ringlab import Contiguous, Layout, Timeline, World, ZigZag
from ringlab.prefill import ring_attention
from ringlab.timeline import Event
from tests.prefill.cases import (
    Attend,
    Inputs,
    Step,
    every_layout,
    every_method,
    every_size,
    inputs,
    masked_or_not,
    step,
)


def timeline_of(
    method: Attend, size: int, layout: Layout, *, length: int = 21, **options: Any
) -> Timeline:
    with World(size) as world:
        world.run(step, method, inputs(length, batch=1), layout, length=length, **options)
        return world.timeline.communication()


def launches(timeline: Timeline, rank: int) -> dict[int, list[Event]]:
    """The messages and collectives of a rank, launch by launch."""
    found = defaultdict(list)
    for event in timeline.of(rank):
        if event.kind != "wait":
            found[event.launch].append(event)
    return found


@every_layout
@masked_or_not
@pytest.mark.parametrize("size", [2, 3, 5])
def test_report_f1_f3_f6_a_hop_is_one_small_batch_with_sends_first(
    layout: Layout, size: int, causal: bool
) -> None:
    timeline = timeline_of(ring_attention, size, layout, causal=causal)
    for rank in range(size):
        hops = launches(timeline, rank)
        assert 0 < len(hops) <= (size - 1) + (size + 1)
        for events in hops.values():
            kinds = [event.kind for event in events]
            assert kinds == sorted(kinds, key=["send", "recv"].index)
            per_kind = Counter(kinds)
            # one message each way, and in the backward one that goes home
            assert max(per_kind.values()) <= 2
            assert max(Counter((e.kind, e.peer) for e in events).values()) == 1


@every_size
def test_forward_makes_one_hop_fewer_than_there_are_ranks(size: int) -> None:
    with World(size) as world:
        world.run(no_gradient, inputs(24))
        timeline = world.timeline.communication()
    for rank in range(size):
        assert len(launches(timeline, rank)) == size - 1
        assert all(len(events) == 2 for events in launches(timeline, rank).values())


def no_gradient(given: Inputs) -> None:
    shards = (ZigZag().shard(x, dist.get_rank(), dist.get_world_size()) for x in given[:3])
    ring_attention(*shards, layout=ZigZag(), causal=True, length=given.q.shape[2])


@every_method
def test_one_rank_alone_sends_nothing(method: Attend) -> None:
    for length in (None, 21):
        with World(1) as world:
            world.run(step, method, inputs(21), Contiguous(), length=length)
            assert len(world.timeline.communication()) == 0


@every_method
@every_layout
def test_report_f15_every_handle_is_waited_for_exactly_once(method: Attend, layout: Layout) -> None:
    timeline = timeline_of(method, 4, layout, causal=True)
    issued = Counter((e.rank, e.launch) for e in timeline if e.kind != "wait")
    waited = Counter((e.rank, e.launch) for e in timeline if e.kind == "wait")
    assert issued == waited
    assert issued


@every_method
def test_report_f4_messages_and_collectives_are_never_under_way_together(method: Attend) -> None:
    with World(4) as world:
        world.run(step, method, inputs(21), ZigZag(), causal=True)  # asks for the length
        timeline = world.timeline.communication()
    for rank in range(4):
        under_way: Counter[str] = Counter()
        for event in timeline.of(rank):
            kind = "collective" if event.name not in ("send", "recv") else "message"
            under_way[kind] += -1 if event.kind == "wait" else 1
            assert not (under_way["collective"] and under_way["message"])
        assert under_way.total() == 0


@every_layout
def test_no_empty_message_is_sent(layout: Layout) -> None:
    timeline = timeline_of(ring_attention, 5, layout, length=3, causal=True)
    assert all(e.bytes_out + e.bytes_in > 0 for e in timeline if e.kind in ("send", "recv"))


@every_method
def test_a_batch_of_no_sequences_sends_nothing_and_gets_empty_gradients(method: Attend) -> None:
    given = inputs(21, batch=0)
    with World(3) as world:
        for found in world.run(step, method, given, ZigZag(), causal=True, length=21):
            assert [x.shape[0] for x in found] == [0] * 4
        assert len(world.timeline.communication()) == 0


@every_layout
@masked_or_not
def test_blocks_only_go_to_the_next_rank_and_gradients_home(layout: Layout, causal: bool) -> None:
    size = 4
    with World(size) as world:
        world.run(no_gradient, inputs(24))
        forward = world.timeline
    assert set(forward.edges()) <= {(rank, (rank + 1) % size) for rank in range(size)}
    backward = timeline_of(ring_attention, size, layout, causal=causal)
    assert all(sender != receiver for sender, receiver in backward.edges())


def test_report_f11_every_edge_sends_what_its_other_end_receives() -> None:
    timeline = timeline_of(ring_attention, 5, Contiguous(), causal=True)
    sent = Counter((e.rank, e.peer, e.bytes_out) for e in timeline if e.kind == "send")
    received = Counter((e.peer, e.rank, e.bytes_in) for e in timeline if e.kind == "recv")
    assert sent == received


class Watch:
    """Notes, rank by rank, when hops start, blocks are computed and handles are waited for."""

    def __init__(self) -> None:
        self.notes: dict[int, list[str]] = defaultdict(list)
        self.buffers_dense: list[bool] = []

    def note(self, what: str) -> None:
        self.notes[threading.get_ident()].append(what)

    def batch(self, original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def called(operations: list[dist.P2POp]) -> list[Any]:
            self.note("hop")
            self.buffers_dense += [op.tensor.is_contiguous() for op in operations]
            return [Handle(self, handle) for handle in original(operations)]

        return called


class Handle:
    """A handle that notes when it is waited for."""

    def __init__(self, watch: Watch, handle: Any) -> None:
        self._watch, self._handle = watch, handle

    def wait(self) -> None:
        self._watch.note("wait")
        self._handle.wait()


class Computing(TorchDispatchMode):
    """Notes the blocks that are computed."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func in (torch.ops.ringlab.attend.default, torch.ops.ringlab.attend_backward.default):
            self._watch.note("compute")
        return func(*args, **(kwargs or {}))


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    watching = Watch()
    monkeypatch.setattr(dist, "batch_isend_irecv", watching.batch(dist.batch_isend_irecv))
    return watching


def run_watched(watch: Watch, given: Inputs, size: int, layout: Layout) -> None:
    def watched_step(given: Inputs) -> Step:  # a closure: arguments are copied for each rank
        with Computing(watch):
            return step(ring_attention, given, layout, length=given.q.shape[2])

    World(size).run(watched_step, given)


def test_each_hop_starts_before_the_compute_that_hides_it_and_is_waited_for_after(
    watch: Watch,
) -> None:
    run_watched(watch, inputs(21), 3, Contiguous())
    assert len(watch.notes) == 3
    forward = ["hop", "compute", "wait", "wait"] * 2 + ["compute"]
    both_ways = ["hop", "compute", "wait", "wait"] * 3 + ["hop", "wait", "wait"]
    assert list(watch.notes.values()) == [forward + both_ways] * 3


@every_layout
def test_report_h1_h2_every_buffer_that_travels_is_contiguous(watch: Watch, layout: Layout) -> None:
    run_watched(watch, inputs(21), 4, layout)
    assert watch.buffers_dense
    assert all(watch.buffers_dense)


@pytest.mark.parametrize("order", ["stream", "host"])
@every_method
def test_the_program_runs_under_the_rules_of_nccl_and_of_gloo(order: Any, method: Attend) -> None:
    given = inputs(21)
    found = World(4, order=order).run(step, method, given, ZigZag(), causal=True)
    assert len(found) == 4


def forwards(given: Inputs, count: int) -> None:
    place = dist.get_rank(), dist.get_world_size()
    shards = [Contiguous().shard(x, *place) for x in given[:3]]
    for _ in range(count):
        ring_attention(*shards, causal=True, length=given.q.shape[2])


def test_report_f16_five_hundred_hops_in_a_row_leave_nothing_behind() -> None:
    with World(6) as world:
        world.run(forwards, inputs(12, batch=1, heads=1, kv_heads=1), 100)
        timeline = world.timeline.communication()
    assert timeline.count("send") == timeline.count("recv") == 100 * 15
    assert timeline.count("wait") == 2 * 100 * 15
