"""Bars lie where the events of a timeline lie."""

import itertools

import pytest

from ringlab.draw.lanes import bars_of, ranks_to_draw, words
from ringlab.timeline import Timeline, exposed_communication
from tests.draw.made import event, ring


def test_with_a_clock_a_bar_is_as_long_as_its_event():
    timeline = ring(4, message=2e-4)
    bars = bars_of(timeline)
    assert bars.clocked
    lasting = [n for n, e in enumerate(timeline) if e.end > e.start]
    assert [bar.number for bar in bars.bars] == lasting
    for bar in bars.bars:
        of = timeline.events[bar.number]
        assert (bar.start, bar.end) == (of.start, of.end)


def test_without_a_clock_every_event_lies_in_its_step_and_no_two_of_a_lane_overlap():
    bars = bars_of(ring(5, clocked=False))
    assert not bars.clocked
    for bar in bars.bars:
        assert bar.event.step <= bar.start < bar.end <= bar.event.step + 1 + 1e-9
    for rank in range(5):
        for lane in ("compute", "send", "receive", "wait"):
            spans = sorted((bar.start, bar.end) for bar in bars.of(rank, lane))
            assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(spans))


def test_two_computations_of_a_step_share_it():
    timeline = Timeline(1, tuple(event(0, "compute", step=3, pairs=p) for p in (1, 2)))
    first, second = bars_of(timeline).bars
    assert first.start == 3
    assert first.end == second.start
    assert first.length == pytest.approx(second.length)


def test_a_view_takes_no_place():
    seen = event(0, "compute", step=0, pairs=1)
    view = seen._replace(work=seen.work._replace(kind="free"))
    assert len(bars_of(Timeline(1, (seen, view))).bars) == 1


@pytest.mark.parametrize("size", [2, 3, 5])
def test_what_is_exposed_is_what_the_timeline_says(size):
    timeline = ring(size, message=1e-3)
    bars = bars_of(timeline)
    for rank in range(size):
        drawn = sum(end - start for start, end in bars.exposed(rank))
        assert drawn == pytest.approx(exposed_communication(timeline, rank))
        assert drawn > 0


def test_a_collective_lies_on_two_lanes():
    gathered = event(0, "collective", start=0.0, end=1.0, out=8, into=8)
    bars = bars_of(Timeline(2, (gathered,)))
    assert bars.of(0, "send") == bars.of(0, "receive") == list(bars.bars)


def test_an_empty_timeline_is_refused():
    with pytest.raises(ValueError, match="run a program first"):
        bars_of(Timeline(2))


@pytest.mark.parametrize(("ranks", "message"), [([4], "0 to 3"), (range(0), "choose 1 to 16")])
def test_ranks_that_cannot_be_drawn_are_refused(ranks, message):
    with pytest.raises(ValueError, match=message):
        ranks_to_draw(ring(4), ranks, 16)


def test_words_name_the_peer_and_the_bytes():
    assert words(event(0, "send", peer=1, out=2048)) == "sends 2 KiB to rank 1"
    assert words(event(1, "recv", peer=0, into=1)) == "receives 1 B from rank 0"
