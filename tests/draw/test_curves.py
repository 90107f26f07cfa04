"""Points of the curves are the numbers given, and crossings stand where curves cross."""

import pytest

from ringlab.draw import draw_decode, draw_errors
from ringlab.draw.curves import crossings
from tests.draw.specimens import CONTEXTS, ERRORS, SECONDS, SENT


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


def test_the_title_says_which_is_fastest_where():
    assert (
        "Fastest: all-gather, then split-K from 9.69K" in draw_decode(CONTEXTS, SENT, SECONDS).alt
    )
    flat = {"one": [1.0] * 9, "other": [2.0] * 9}
    assert "one is the fastest at every length" in draw_decode(CONTEXTS, flat, flat).alt


@pytest.mark.parametrize(
    ("sent", "seconds", "message"),
    [
        ({"a": [1, 2]}, {"b": [1, 2]}, "methods differ"),
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
