"""The export for Perfetto: valid, complete, and true to the timeline."""

from __future__ import annotations

import json
import random

import pytest
import torch

from ringlab import World, ring_attention
from ringlab.layout import ZigZag
from ringlab.timeline import NoClock
from tests.timeline.made import compute, hidden, late_sender, recv, send, timeline, without_clock
from tests.timeline.test_lost_time import at_random
from tests.timeline.trace_format import check_trace


def trace_of(run, tmp_path, **options):
    path = run.to_chrome_trace(tmp_path / "trace.json", **options)
    return json.loads(path.read_text())


def slices(trace, **wanted):
    return [
        e
        for e in trace["traceEvents"]
        if e["ph"] == "X" and all(e[field] == value for field, value in wanted.items())
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_trace_keeps_to_the_format(tmp_path, seed):
    for run in (late_sender(), hidden(), at_random(random.Random(seed))):
        check_trace(trace_of(run, tmp_path))


@pytest.mark.parametrize("machine", ["8x h100-nvlink", "8x a100"])
def test_slices_that_touch_do_not_overlap_when_times_are_rounded_to_nanoseconds(tmp_path, machine):
    with World(4) as world:
        world.run(
            lambda: ring_attention(*torch.randn(3, 1, 2, 16, 8), layout=ZigZag(), causal=True)
        )
        check_trace(trace_of(world.price(machine), tmp_path))


def test_every_event_is_one_slice_with_its_times_and_bytes(tmp_path):
    run = late_sender()
    trace = trace_of(run, tmp_path)
    assert len(slices(trace)) == len(run)
    (message,) = slices(trace, name="send to rank 1")
    assert (message["pid"], message["ts"], message["dur"]) == (0, 5e6, 3e6)
    assert message["args"]["bytes_out"] == 100
    assert message["args"]["site"] == "ring.py:2 in ring"
    (merge,) = slices(trace, name="merge")
    assert (merge["pid"], merge["cat"], merge["args"]["step"]) == (1, "compute", 1)


def test_each_rank_is_a_process_with_named_lanes(tmp_path):
    trace = trace_of(late_sender(), tmp_path)
    names = {
        (e["pid"], e["tid"], e["args"]["name"])
        for e in trace["traceEvents"]
        if e["name"] in ("process_name", "thread_name")
    }
    assert names == {
        (0, 0, "rank 0"), (0, 0, "compute"), (0, 100, "send"), (0, 400, "wait"),
        (1, 0, "rank 1"), (1, 0, "compute"), (1, 200, "receive"), (1, 400, "wait"),
    }  # fmt: skip


def test_an_arrow_leads_from_each_send_to_its_receive(tmp_path):
    trace = trace_of(hidden(), tmp_path)
    arrows = {
        phase: {e["id"]: e["pid"] for e in trace["traceEvents"] if e["ph"] == phase}
        for phase in "sf"
    }
    pairs = [(arrows["s"][number], arrows["f"][number]) for number in arrows["s"]]
    assert sorted(pairs) == [(0, 1), (1, 0)]


def test_what_overlaps_gets_a_lane_of_its_own(tmp_path):
    run = timeline(send(0, 0, 1, 8, 0, 3), send(0, 1, 1, 8, 1, 4), send(0, 2, 1, 8, 3, 5))
    trace = trace_of(run, tmp_path)
    check_trace(trace)
    assert [e["tid"] for e in slices(trace)] == [100, 101, 100]


def test_a_message_that_nobody_received_has_no_arrow(tmp_path):
    trace = trace_of(timeline(send(0, 0, 1, 8, 0, 3), recv(0, 1, 1, 8, 0, 1)), tmp_path)
    check_trace(trace)
    assert not [e for e in trace["traceEvents"] if e["ph"] in "sf"]


def test_a_timeline_without_a_clock_is_refused_before_a_file_is_made(tmp_path):
    with pytest.raises(NoClock, match="price it"):
        without_clock(hidden()).to_chrome_trace(tmp_path / "trace.json")
    assert not list(tmp_path.iterdir())


def profile(tmp_path, base=1_700_000_000_000_000_000):
    """A profile as torch writes it: microseconds since a base in nanoseconds."""
    path = tmp_path / "profile.json"
    events = [
        {"ph": "X", "cat": "kernel", "name": "flash", "pid": 0, "tid": 7, "ts": 5.0, "dur": 2.0},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 33, "tid": 33, "ts": 1.0,
         "dur": 9.0, "args": {"External id": 1}},
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 20.0, "s": "g"},
    ]  # fmt: skip
    path.write_text(json.dumps({"baseTimeNanoseconds": base, "traceEvents": events}))
    return path


def test_kernels_of_a_profile_stand_below_the_lanes_of_their_rank_on_one_clock(tmp_path):
    run = timeline(compute(1, 0, 1), began=1_700_000_000.0 - 2.0)
    trace = trace_of(run, tmp_path, profiles={1: profile(tmp_path)})
    check_trace(trace)
    (kernel,) = slices(trace, name="flash")
    assert kernel["pid"] == 1
    assert kernel["ts"] == pytest.approx(2e6 + 5)
    (operator,) = slices(trace, name="aten::mm")
    assert operator["tid"] != kernel["tid"] >= 1000
    assert len(slices(trace)) == 3


def test_a_profile_needs_a_run_on_real_ranks(tmp_path):
    with pytest.raises(ValueError, match="only a timeline recorded on real ranks"):
        trace_of(hidden(), tmp_path, profiles={0: profile(tmp_path)})


def test_a_profile_of_a_rank_that_is_not_there_is_refused(tmp_path):
    run = timeline(compute(0, 0, 1), began=0.0)
    with pytest.raises(ValueError, match="rank 2 is not in this timeline of 2 ranks"):
        trace_of(run, tmp_path, profiles={2: profile(tmp_path)})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": []}'])
def test_a_file_that_is_no_profile_is_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"is no trace of torch\.profiler"):
        trace_of(timeline(compute(0, 0, 1), began=0.0), tmp_path, profiles={0: path})
