"""What real ranks record: times on one clock, computing by derivation, regions, profiles."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from ringlab import Timeline, World
from ringlab.timeline import (
    busy,
    critical_path,
    exposed_communication,
    imbalance,
    lost_time,
    makespan,
    overlap,
    peak_bytes_in_flight,
    region,
    traffic,
    waiting,
)
from tests.timeline.trace_format import check_trace

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def pair() -> Iterator[World]:
    with World(2, backend="gloo", threads=1, timeout=60) as world:
        world.run(int)
        yield world


def spin(seconds: float) -> None:
    """Compute for a while, whatever else the machine does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


LONG = 0.4


def late() -> None:
    """Rank 0 computes before it sends; rank 1 waits for it."""
    x = torch.zeros(1000)
    if dist.get_rank() == 0:
        with region("prepare"):
            spin(LONG)
        dist.send(x, 1)
    else:
        handle = dist.irecv(x, 0)
        handle.wait()
        with region("merge"):
            spin(LONG / 2)


@pytest.fixture(scope="module")
def run(pair: World) -> Timeline:
    pair.run(late)
    return pair.timeline


def test_every_event_has_times_in_order_of_its_rank(run: Timeline) -> None:
    for rank in range(2):
        starts = [e.start for e in run.of(rank)]
        assert None not in starts
        assert starts == sorted(starts)
    assert all(e.start <= e.end for e in run)
    assert min(e.start for e in run) == pytest.approx(0, abs=0.05)


def test_ranks_share_a_clock_so_nothing_arrives_before_it_is_sent(run: Timeline) -> None:
    (sent,), (came,) = run.of(0, "send"), run.of(1, "recv")
    (waited,) = run.of(1, "wait")
    assert sent.start >= LONG
    assert came.start < sent.start < came.end == waited.end


def test_computing_is_what_lies_between_calls_divided_by_regions(run: Timeline) -> None:
    (prepare,) = [e for e in run.of(0, "compute") if e.label == "prepare"]
    (merge,) = [e for e in run.of(1, "compute") if e.label == "merge"]
    assert prepare.end - prepare.start >= LONG
    assert merge.end - merge.start >= LONG / 2
    assert prepare.site.endswith("in late")
    assert merge.step == 1
    assert {e.name for e in run if e.kind == "compute"} == {"compute"}


def test_what_follows_from_the_times_is_what_the_program_did(run: Timeline) -> None:
    assert busy(run, 0) >= LONG
    assert waiting(run, 1) >= LONG / 4  # it may have begun later
    assert exposed_communication(run, 1) >= waiting(run, 1) - 1e-9
    assert 0 <= overlap(run) <= 1
    assert imbalance(run) >= 1
    assert traffic(run) == [[0, 4000], [0, 0]]
    assert peak_bytes_in_flight(run) == peak_bytes_in_flight(run, 1) == 4000
    path = critical_path(run)
    assert path.length == pytest.approx(makespan(run))
    kinds = [(e.rank, e.label or e.kind) for e in path.events]
    assert kinds.index((0, "prepare")) < kinds.index((0, "send")) < kinds.index((1, "merge"))
    lost = lost_time(run)
    assert lost.useful + lost.lost == pytest.approx(2 * makespan(run))
    assert lost.imbalance >= LONG / 2
    assert lost.merge >= LONG / 2


def test_a_recording_travels_through_a_file_and_into_a_trace(run: Timeline, tmp_path) -> None:
    again = Timeline.load(run.save(tmp_path / "run.json"))
    assert again == run
    check_trace(json.loads(again.to_chrome_trace(tmp_path / "trace.json").read_text()))


def polled() -> None:
    handle = dist.all_reduce(torch.zeros(4), async_op=True)
    while not handle.is_completed():
        time.sleep(1e-3)


def test_a_collective_that_was_only_polled_ends_when_it_was_found_to_be_over(pair: World) -> None:
    pair.run(polled)
    for rank in range(2):
        (reduced,) = pair.timeline.of(rank, "collective")
        assert reduced.end is not None
        assert pair.timeline.count("wait", rank) == 0


def profiled(folder: str) -> None:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profile, region("seen twice"):
        spin(LONG)
        torch.ones(3) @ torch.ones(3)
    profile.export_chrome_trace(f"{folder}/{dist.get_rank()}.json")


def test_a_profile_of_a_rank_lies_where_the_timeline_saw_the_same(pair: World, tmp_path) -> None:
    pair.run(profiled, str(tmp_path))
    (seen,) = [e for e in pair.timeline.of(1, "compute") if e.label == "seen twice"]
    path = pair.timeline.to_chrome_trace(
        tmp_path / "trace.json", profiles={r: tmp_path / f"{r}.json" for r in range(2)}
    )
    document = json.loads(path.read_text())
    slices = [e for e in document["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    theirs = [e for e in slices if e["name"] == "seen twice" and e["tid"] >= 1000]
    assert len(theirs) == 1
    # two clocks of one machine, and a profiler that takes time to begin
    assert theirs[0]["ts"] / 1e6 == pytest.approx(seen.start, abs=LONG / 2)
    assert any(e["name"].startswith("aten::") for e in slices)


def many_messages(count: int) -> float:
    """Seconds of this thread's CPU time for a number of small exchanges."""
    other = 1 - dist.get_rank()
    x, y = torch.zeros(1), torch.zeros(1)
    dist.barrier()
    began = time.thread_time()
    for _ in range(count):
        batch = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
        for handle in dist.batch_isend_irecv(batch):
            handle.wait()
    return time.thread_time() - began


def without_recording(count: int) -> float:
    """The same, not noted."""
    import gc

    from ringlab.world.processes.last_op import Journal

    (journal,) = [o for o in gc.get_objects() if type(o) is Journal]
    with journal.silence():
        return many_messages(count)


def test_recording_a_message_costs_at_most_half_a_millisecond(pair: World) -> None:
    costs = []
    for _ in range(3):
        plain, recorded = (max(pair.run(fn, 100)) for fn in (without_recording, many_messages))
        costs.append((recorded - plain) / 100)
    assert min(costs) / 2 < 0.5e-3  # two messages each; 0.1 ms or less is usual
