"""Bars of the timeline are as long as the events, in every lane; two timelines share an axis."""

import pytest
from matplotlib.patches import Rectangle

from ringlab.draw import draw_timeline, draw_timelines
from ringlab.layout import ZigZag
from ringlab.timeline import exposed_communication
from tests.draw.made import ring


def rectangles(axis, prefix):
    return {
        patch.get_gid(): patch
        for patch in axis.patches
        if isinstance(patch, Rectangle) and (patch.get_gid() or "").startswith(prefix)
    }


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_each_event_that_lasts_is_one_bar_of_its_length(size):
    timeline = ring(size, message=2e-4)
    drawn = rectangles(draw_timeline(timeline).figure.axes[0], "event-")
    lasting = {f"event-{n}": e for n, e in enumerate(timeline) if e.end > e.start}
    assert set(drawn) == set(lasting)
    for gid, bar in drawn.items():
        assert bar.get_x() == pytest.approx(lasting[gid].start)
        assert bar.get_width() == pytest.approx(lasting[gid].end - lasting[gid].start)
        assert int(bar.get_y()) == lasting[gid].rank


def test_kinds_differ_in_place_and_hatch_as_well_as_in_colour():
    timeline = ring(3, message=3e-4)
    drawn = rectangles(draw_timeline(timeline).figure.axes[0], "event-")
    looks = {}
    for gid, bar in drawn.items():
        kind = timeline.events[int(gid.split("-")[1])].kind
        looks.setdefault(kind, set()).add((round(bar.get_y() % 1, 3), bar.get_hatch()))
    assert all(len(look) == 1 for look in looks.values())
    assert len({look.pop() for look in looks.values()}) == 4


def test_exposed_communication_is_marked_for_as_long_as_it_lasts():
    timeline = ring(4, message=3e-4)
    picture = draw_timeline(timeline)
    for rank in range(4):
        marks = rectangles(picture.figure.axes[0], f"exposed-{rank}-").values()
        assert sum(m.get_width() for m in marks) == pytest.approx(
            exposed_communication(timeline, rank)
        )
    assert "exposed 764 µs" in picture.alt


def test_without_a_clock_the_axis_counts_steps_and_nothing_is_called_exposed():
    picture = draw_timeline(ring(3, clocked=False))
    axis = picture.figure.axes[0]
    assert axis.get_xlabel() == "step"
    assert not rectangles(axis, "exposed-")
    assert "without a clock" in picture.alt


def test_chosen_ranks_alone_are_drawn():
    axis = draw_timeline(ring(20), ranks=[3, 7]).figure.axes[0]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["rank 3", "rank 7"]
    with pytest.raises(ValueError, match="ranks="):
        draw_timeline(ring(20))


def compared(**changes):
    given = {"contiguous": ring(4, message=1e-4), "zig-zag": ring(4, layout=ZigZag(), message=1e-4)}
    return {**given, **changes}


def test_two_timelines_share_one_axis_of_time_and_each_has_its_end():
    timelines = compared()
    picture = draw_timelines(timelines)
    above, below = picture.figure.axes
    assert above.get_xlim() == below.get_xlim()
    for axis, timeline in zip((above, below), timelines.values(), strict=True):
        assert len(rectangles(axis, "event-")) == sum(e.end > e.start for e in timeline)
        line = next(line for line in axis.lines if line.get_gid() == "end")
        assert line.get_xdata()[0] == pytest.approx(max(e.end for e in timeline))


def test_the_title_says_which_is_done_first():
    assert "zig-zag takes 58 % of the time of contiguous" in draw_timelines(compared()).alt
    same = {"one": ring(2), "other": ring(2)}
    assert "one and other end together" in draw_timelines(same).alt


@pytest.mark.parametrize(
    ("timelines", "message"),
    [
        ({"one": ring(2)}, "two timelines or more"),
        (compared(third=ring(2, clocked=False)), "have a clock"),
        (compared(third=ring(9)), "at most 16"),
    ],
)
def test_timelines_that_cannot_be_compared_are_refused(timelines, message):
    with pytest.raises(ValueError, match=message):
        draw_timelines(timelines)
