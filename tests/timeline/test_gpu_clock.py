"""The clock of ranks on GPUs, with a stand-in for CUDA: its times are those of the stream."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist

from ringlab import World
from ringlab.timeline import busy, lost_time, makespan, region, waiting
from ringlab.world.processes.clocks import GpuClock, HostClock
from ringlab.world.processes.entries import Entry
from ringlab.world.processes.operations import Operation
from ringlab.world.processes.recorder import Recorder
from ringlab.world.source import Site
from tests.gpu import pretended
from tests.gpu.pretended import Stream

SITE = Site("program.py", 7, "work")


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    return pretended.stream(monkeypatch)


def entry() -> Entry:
    operation = Operation("send", "send", 1, 8, 0, (2,), "float32", on_gpu=True)
    return Entry(operation, (0, 1), 0, 0, SITE)


def run_on(recorder: Recorder, stream: Stream) -> None:
    """Compute 1 s, send, compute 2 s, wait 3 s, compute 4 s."""
    recorder.start()
    stream.now += 1
    sent = entry()
    recorder.issue(sent, recorder.interrupt())
    recorder.resume(SITE)
    stream.now += 2
    notes = recorder.waits([sent])
    stream.now += 3
    recorder.waited(notes)
    recorder.resume(SITE)
    stream.now += 4
    recorder.stop()


def test_events_have_the_times_at_which_the_stream_passed(stream: Stream) -> None:
    recorder = Recorder(0, GpuClock())
    before = time.monotonic()
    run_on(recorder, stream)
    found = recorder.recording()
    assert before <= found.began <= time.monotonic()
    seen = [(e.kind, e.start - found.began, e.end - found.began) for e in found.events]
    expected = [
        ("compute", 0, 1), ("send", 1, 6), ("compute", 1, 3), ("wait", 3, 6), ("compute", 6, 10),
    ]  # fmt: skip
    assert [kind for kind, *_ in seen] == [kind for kind, *_ in expected]
    for one, other in zip(seen, expected, strict=True):
        assert one[1:] == pytest.approx(other[1:])


def test_what_the_stream_has_not_reached_has_no_end(stream: Stream) -> None:
    recorder = Recorder(0, GpuClock())
    run_on(recorder, stream)
    stream.reached = 5.0
    events = recorder.recording().events
    assert [(e.kind, e.end is None) for e in events] == [
        ("compute", False), ("send", True), ("compute", False), ("wait", True),
    ]  # fmt: skip


def test_a_gpu_that_has_failed_leaves_the_operations_without_times(stream: Stream) -> None:
    recorder = Recorder(0, GpuClock())
    run_on(recorder, stream)
    stream.broken = True
    found = recorder.recording()
    assert found.began is None
    assert [(e.kind, e.start, e.end) for e in found.events] == [
        ("send", None, None), ("wait", None, None),
    ]  # fmt: skip


def test_nothing_is_recorded_on_a_stream_while_a_graph_is_captured(stream: Stream) -> None:
    clock = GpuClock()
    clock.begin()
    first = clock.mark()
    stream.capturing = True
    assert clock.mark() is first


def test_the_host_clock_tells_the_time_of_the_mark() -> None:
    clock = HostClock()
    clock.begin()
    assert clock.seconds(clock.mark()) == pytest.approx(time.monotonic(), abs=1)


def exchange_on_gpu() -> None:
    other = 1 - dist.get_rank()
    x = torch.randn(1000, 1000)
    y = torch.empty_like(x)
    handles = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
    )
    with region("attend"):
        for _ in range(50):
            x @ x
    for handle in handles:
        handle.wait()
    y + 1


@pytest.mark.nccl
def test_ranks_on_gpus_record_times_of_their_streams() -> None:
    with World(2, backend="nccl") as world:
        world.run(exchange_on_gpu)
        world.run(exchange_on_gpu)
        timeline = world.timeline
    assert all(e.start is not None and e.end is not None for e in timeline)
    assert all(busy(timeline, rank) > 0 and waiting(timeline, rank) >= 0 for rank in range(2))
    assert any(e.label == "attend" for e in timeline)
    lost = lost_time(timeline)
    assert lost.useful + lost.lost == pytest.approx(2 * makespan(timeline))
