"""What all pictures promise: words, two themes, text that can be read and covers no other text."""

from functools import cache
from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from ringlab import draw
from ringlab.draw.theme import theme_named
from tests.draw.made import ring
from tests.draw.specimens import SPECIMENS

THEMES = ["light", "dark"]


@cache
def made(name, theme="light"):
    return SPECIMENS[name](theme)


def shown_texts(figure):
    """Without those of axes that are switched off, and of ticks beyond the ends."""
    hidden = set()
    for axis in figure.axes:
        for part in (axis.xaxis, axis.yaxis):
            low, high = sorted(part.get_view_interval())
            texts = [] if axis.axison else part.findobj(Text)
            for tick in part.get_major_ticks() + part.get_minor_ticks():
                if not low <= tick.get_loc() <= high:
                    texts += [tick.label1, tick.label2]
            hidden |= {id(text) for text in texts}
    return [
        text
        for text in figure.findobj(Text)
        if id(text) not in hidden and text.get_visible() and text.get_text().strip()
    ]


def luminance(colour):
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_there_is_a_specimen_of_every_picture():
    drawn = {name for name in draw.__all__ if name.startswith("draw_")}
    assert drawn == {
        word for function in SPECIMENS.values() for word in function.__code__.co_names
        if word.startswith("draw_")
    }  # fmt: skip


@pytest.mark.parametrize("name", SPECIMENS)
def test_no_text_covers_another_or_leaves_the_sheet(name):
    figure = made(name).figure
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown_texts(figure)]
    assert len(boxes) > 3
    for (one, a), (other, b) in combinations(boxes, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide < 2 or high < 2, (one, other)
    sheet = figure.get_tightbbox().transformed(figure.dpi_scale_trans)
    for text, box in boxes:
        assert sheet.x0 - 1 <= box.x0 <= box.x1 <= sheet.x1 + 1, text


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", SPECIMENS)
def test_text_stands_out_from_the_paper_of_its_theme(name, theme):
    look, picture = theme_named(theme), made(name, theme)
    assert picture.figure.get_facecolor()[:3] == to_rgb(look.paper)
    assert contrast(look.ink, look.panel) > 10
    for text in shown_texts(picture.figure):
        if to_rgb(text.get_color()) != to_rgb(look.panel):  # that is text on a bar
            assert contrast(text.get_color(), look.panel) > 7, text
        assert text.get_fontsize() >= 5


@pytest.mark.parametrize("name", SPECIMENS)
def test_words_say_more_than_the_title_with_numbers(name):
    picture = made(name)
    title = picture.figure.get_suptitle() or picture.figure.axes[0].get_title()
    assert len(picture.alt) > 60
    assert len(title) > 8
    assert any(character.isdigit() for character in picture.alt)
    assert picture.alt != title


@pytest.mark.parametrize("theme", THEMES)
def test_text_on_bars_can_be_read(theme):
    look = theme_named(theme)
    assert contrast(look.panel, look.colour(0)) > 4.5


def test_the_colours_of_one_theme_can_be_told_from_its_panel():
    for theme in THEMES:
        look = theme_named(theme)
        for colour in (*look.palette[:4], look.alarm):
            assert contrast(colour, look.panel) > 1.9, (theme, colour)


def test_an_unknown_theme_is_refused():
    with pytest.raises(ValueError, match='choose "light" or "dark"'):
        draw.draw_traffic(ring(3), theme="sepia")


def test_a_title_of_ones_own_replaces_the_finding():
    drawn = draw.draw_timeline(ring(2), title="mine").figure.axes[0].get_title()
    assert drawn == "mine"


def test_a_picture_is_the_same_svg_each_time():
    assert draw.draw_traffic(ring(2)).svg() == draw.draw_traffic(ring(2)).svg()
