"""Bars end where the numbers are, marks where the formula is."""

import pytest

from ringlab.draw import bytes_text, draw_measured


def picture(**changes):
    given = {
        "groups": ["W = 2", "W = 4"],
        "measured": {"ring": [10, 30], "all-gather": [12, 28]},
        "formula": {"ring": [10, 30], "all-gather": [12, 28]},
        "unit": "bytes",
    }
    given.update(changes)
    return draw_measured(given.pop("groups"), given.pop("measured"), given.pop("formula"), **given)


def test_bars_have_the_measured_heights():
    axis = picture(divide=2).figure.axes[0]
    assert [bar.get_height() for bar in axis.patches] == [5, 15, 6, 14]


def test_marks_stand_at_the_formula():
    axis = picture(formula={"ring": [1, 2], "all-gather": [3, 4]}).figure.axes[0]
    marks = [list(line.get_ydata()) for line in axis.lines]
    assert marks == [[1, 2], [3, 4]]


def test_series_differ_by_hatch_as_well_as_by_colour():
    hatches = {bar.get_hatch() for bar in picture().figure.axes[0].patches}
    assert len(hatches) == 2


def test_the_words_tell_whether_all_bars_agree():
    assert "Every bar ends where its formula puts it" in picture().alt
    assert "Not all bars agree" in picture(formula={"ring": [9, 30], "all-gather": [12, 28]}).alt


def test_the_key_says_how_the_bars_were_found():
    for given, expected in (({}, "measured"), ({"how": "priced"}, "priced")):
        labels = picture(**given).figure.axes[0].get_legend_handles_labels()[1]
        assert [f"{name}, {expected}" for name in ("ring", "all-gather")] == [
            label for label in labels if label != "formula"
        ]


def test_a_reference_line_is_drawn_and_told():
    drawn = picture(reference=("the whole", 40), divide=2)
    assert drawn.figure.axes[0].lines[-1].get_ydata()[0] == 20
    assert "the whole, 20" in drawn.alt


@pytest.mark.parametrize(
    "changes",
    [
        {"formula": {"ring": [1, 2]}},
        {"measured": {"ring": [1], "all-gather": [1, 2]}},
        {"groups": ["one"]},
    ],
)
def test_series_that_do_not_match_are_refused(changes):
    with pytest.raises(ValueError, match=r"series differ|values for"):
        picture(**changes)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**20, "1 MiB"), (5 * 2**40, "5 TiB")],
)
def test_bytes_are_written_in_binary_units(count, text):
    assert bytes_text(count) == text


def test_the_title_states_the_finding_unless_one_is_given():
    assert "where its formula puts it" in picture().figure.axes[0].get_title()
    wrong = {"ring": [9, 30], "all-gather": [12, 28]}
    assert "Not all bars agree" in picture(formula=wrong).figure.axes[0].get_title()
    assert picture(title="mine").figure.axes[0].get_title() == "mine"


def test_a_label_of_two_lines_is_one_in_the_words():
    assert "ring: W = 2 small 10, W = 4 30" in picture(groups=["W = 2\nsmall", "W = 4"]).alt
