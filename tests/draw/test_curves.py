"""Points of the curves are the numbers given, and crossings stand where curves cross."""

import math

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from ringlab.draw import draw_decode, draw_errors
from ringlab.draw.curves import crossings
from tests.draw.specimens import (
    BATCH_SECONDS,
    BATCH_SENT,
    BATCHES,
    CONTEXTS,
    ERRORS,
    SECONDS,
    SENT,
)


def curves(axis):
    return [
        list(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in axis.lines
        if (line.get_gid() or "").startswith("curve-")
    ]


def test_curves_of_decode_are_the_numbers_given():
    left, right = draw_decode(CONTEXTS, SENT, SECONDS).figure.axes
    for axis, series in ((left, SENT), (right, SECONDS)):
        assert curves(axis) == [list(zip(CONTEXTS, ys, strict=True)) for ys in series.values()]
        assert axis.get_xscale() == axis.get_yscale() == "log"


def test_curves_differ_by_marker_and_dash():
    axis = draw_decode(CONTEXTS, SENT, SECONDS).figure.axes[0]
    assert len({(line.get_marker(), line.get_linestyle()) for line in axis.lines[:3]}) == 3


def test_two_powers_cross_where_algebra_says():
    xs = [1, 10, 100, 1000]
    series = {"square": [x * x for x in xs], "line": [50 * x for x in xs]}
    (only,) = crossings(xs, series)
    assert only.x == pytest.approx(50)
    assert only.y == pytest.approx(2500)
    assert (only.before, only.after) == ("square", "line")


def test_curves_that_meet_at_a_given_point_cross_there_once_and_a_touch_is_none():
    xs = [1, 10, 100]
    (only,) = crossings(xs, {"flat": [5, 5, 5], "up": [1, 5, 9]})
    assert (only.x, only.after) == (pytest.approx(10), "flat")
    assert crossings(xs, {"flat": [5, 5, 5], "tent": [1, 5, 1]}) == []
    assert crossings(xs, {"flat": [5, 5, 5], "same": [5, 5, 5]}) == []


def test_only_changes_of_the_lowest_count_unless_all_are_asked_for():
    xs = [1, 10, 100]
    series = {"low": [1, 1, 1], "up": [10, 100, 1000], "down": [1000, 100.5, 10]}
    assert crossings(xs, series) == []
    assert len(crossings(xs, series, lowest=False)) == 1


def test_rings_mark_the_crossings():
    left, right = draw_decode(CONTEXTS, SENT, SECONDS).figure.axes
    for axis, series in ((left, SENT), (right, SECONDS)):
        marks = [
            (line.get_xdata()[0], line.get_ydata()[0])
            for line in axis.lines
            if (line.get_gid() or "").startswith("crossing-")
        ]
        assert marks == [(c.x, c.y) for c in crossings(CONTEXTS, series)]
        assert marks


def test_what_sends_nothing_has_no_curve_of_bytes_and_keeps_its_look():
    left, right = draw_decode(BATCHES, BATCH_SENT, BATCH_SECONDS).figure.axes
    looks = [
        {line.get_label(): (line.get_marker(), line.get_color()) for line in axis.lines
         if (line.get_gid() or "").startswith("curve-")}
        for axis in (left, right)
    ]  # fmt: skip
    assert list(looks[0]) == list(BATCH_SENT)
    assert list(looks[1]) == list(BATCH_SECONDS)
    assert looks[0].items() <= looks[1].items()
    assert "from nothing sent and 100 µs" in draw_decode(BATCHES, BATCH_SENT, BATCH_SECONDS).alt


def test_what_grows_is_named_on_the_axis_and_in_the_finding():
    picture = draw_decode(BATCHES, BATCH_SENT, BATCH_SECONDS, along="sequences in the batch")
    assert picture.figure.axes[1].get_xlabel() == "sequences in the batch"
    assert "1 to 32 sequences" in picture.alt
    assert "sequences dealt out to all from 1.57 sequences on" in picture.alt


@pytest.mark.parametrize("scale", [1, 37, 2**9, 5e5, 2**33])
@pytest.mark.parametrize("growth", [1.01, 3, 2**4, 2**14, 2**31])
def test_ticks_of_bytes_are_powers_of_two_and_of_1024_where_three_of_them_fit(scale, growth):
    sent = {"a": [scale, scale * growth]}
    left, _ = draw_decode([1024, 2048], sent, {"a": [1e-3, 2e-3]}).figure.axes
    low, high = left.get_ylim()
    ticks = list(left.get_yticks())
    powers = [p for p in (1024**n for n in range(-2, 9)) if low <= p <= high]
    assert len(ticks) >= 2
    assert all(low <= tick <= high and math.log2(tick) == int(math.log2(tick)) for tick in ticks)
    if len(powers) >= 3:
        assert ticks == powers


@pytest.mark.parametrize("scale", [1e-9, 0.0021, 0.9, 77.0])
@pytest.mark.parametrize("growth", [1.0, 3, 9, 12, 1e6])
def test_ticks_of_times_are_powers_of_ten_and_two_at_least(scale, growth):
    times = {"a": [scale, scale * growth]}
    _, right = draw_decode([1024, 2048], {"a": [1, 2]}, times).figure.axes
    low, high = right.get_ylim()
    ticks = list(right.get_yticks())
    powers = [p for p in (10.0**n for n in range(-12, 10)) if low <= p <= high]
    assert len(ticks) >= 2
    assert ticks == powers or len(powers) < 2
    assert all(low <= tick <= high and f"{tick:e}"[0] in "125" for tick in ticks)


@pytest.mark.parametrize("place", [0.05, 0.3, 0.5, 0.7, 0.95])
def test_the_name_of_a_crossing_lies_inside_its_panel_above_all_curves(place):
    x = 1024 ** (1 + place)
    contexts = [1024, 2**15, 2**20]
    series = {
        "a flat line of some length": [x] * 3,
        "a steep line of some length": [float(c) for c in contexts],
    }
    picture = draw_decode(contexts, series, {name: ys[:] for name, ys in series.items()})
    figure = picture.figure
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    for axis in figure.axes:
        (label,) = [text for text in axis.texts if text.get_gid() == "turn-0"]
        box, panel = label.get_window_extent(), axis.get_window_extent()
        assert panel.x0 <= box.x0 < box.x1 <= panel.x1
        highest = axis.transData.transform((1024, max(max(ys) for ys in series.values())))[1]
        assert highest < box.y0 < box.y1 <= panel.y1


def test_of_methods_that_begin_alike_the_title_names_the_one_that_stays_fastest():
    series = {"stays": [1.0, 2.0], "turns": [1.0, 1.0]}
    assert "turns is the fastest throughout" in draw_decode([1, 8], series, series).alt


def test_the_title_says_which_is_fastest_where():
    assert (
        "Fastest: all-gather, then split-K from 9.69K" in draw_decode(CONTEXTS, SENT, SECONDS).alt
    )
    flat = {"one": [1.0] * 9, "other": [2.0] * 9}
    assert "one is the fastest throughout" in draw_decode(CONTEXTS, flat, flat).alt


@pytest.mark.parametrize(
    ("sent", "seconds", "message"),
    [
        ({"a": [1, 2]}, {"b": [1, 2]}, "methods differ"),
        ({}, {"b": [1, 2]}, "methods differ"),
        ({"a": [1]}, {"a": [1, 2]}, "1 numbers of bytes for 2 points"),
        ({"a": [1, 0]}, {"a": [1, 2]}, "values above 0"),
    ],
)
def test_decode_refuses_what_it_cannot_show(sent, seconds, message):
    with pytest.raises(ValueError, match=message):
        draw_decode([1024, 2048], sent, seconds)
    with pytest.raises(ValueError, match="two ascending values"):
        draw_decode([2048, 1024], {"a": [1, 2]}, {"a": [1, 2]})


def test_curves_of_errors_are_the_numbers_given_and_a_line_is_one_device():
    axis = draw_errors(ERRORS).figure.axes[0]
    assert curves(axis) == list(ERRORS.values())
    one = next(line for line in axis.lines if line.get_gid() == "one-device")
    assert list(one.get_ydata()) == [1, 1]


def test_the_title_names_the_policies_that_stay_flat():
    assert "flat only with fp32 partials" in draw_errors(ERRORS).alt
    assert "No policy loses" in draw_errors({"a": [(2, 1.0), (8, 1.05)]}).alt
    assert "Every policy loses" in draw_errors({"a": [(2, 1.0), (8, 1.2)]}).alt


@pytest.mark.parametrize(
    ("policies", "message"),
    [({}, "at least one"), ({"a": []}, "pairs"), ({"a": [(2, 0)]}, "above 0")],
)
def test_errors_refuses_what_it_cannot_show(policies, message):
    with pytest.raises(ValueError, match=message):
        draw_errors(policies)
