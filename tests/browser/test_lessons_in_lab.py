"""Each lesson in a real JupyterLab in a real browser, as a learner meets it."""

from itertools import groupby

import pytest

from tests.notebooks.form import WIDGET
from tools.course.manifest import written

FIRST_TIER = "04"
"""Number of the lesson that is run in `make test`: a short one."""

IGNORED = "nbval-ignore-output"


def lessons(first_tier=None):
    return [
        pytest.param(
            each, id=each.file, marks=[] if each.number == first_tier else pytest.mark.slow
        )
        for each in written()
    ]


pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def said(cells):
    """What each compared code cell printed, showed in words or raised; streams in one piece."""
    return [
        [] if IGNORED in cell["metadata"].get("tags", []) else joined(cell["outputs"])
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def joined(outputs):
    words = []
    for name, pieces in groupby(outputs, lambda o: o.get("name")):
        texts = [text_of(piece) for piece in pieces]
        words += ["".join(texts)] if name else texts
    return words


def text_of(output):
    text = output.get("text", output.get("data", {}).get("text/plain", output.get("evalue", "")))
    return "".join(text)


def pictures(cells, *, run):
    """How many outputs a front end shows as a picture; of a widget that ran it shows the widget."""
    data = [o.get("data", {}) for c in cells for o in c.get("outputs", [])]
    return sum("image/png" in each and not (run and WIDGET in each) for each in data)


def seen_pictures(lab):
    lab.scroll_through()
    return lab.page.evaluate(
        "() => [...document.querySelectorAll('.jp-RenderedImage img')]"
        ".filter(i => i.naturalWidth > 100).length"
    )


def errors(cells):
    return [o for c in cells for o in c.get("outputs", []) if o["output_type"] == "error"]


@pytest.mark.slow
@pytest.mark.parametrize("lesson", lessons())
def test_an_untrusted_fresh_clone_shows_text_formulas_and_pictures(lab, lesson):
    lab.open(f"notebooks/{lesson.file}")
    stored = pictures(lab.cells(), run=False)
    assert stored >= 2
    assert seen_pictures(lab) == stored
    assert lab.page.locator(".jp-MarkdownOutput h1").first.inner_text().startswith(lesson.number)
    formulas = sum("$" in cell.source for cell in lesson.read().cells if cell.cell_type != "code")
    assert lab.page.locator("mjx-container").count() >= formulas
    for player in lab.page.locator("img[alt^='A timeline'][src^='data:image/svg']").all():
        assert player.evaluate("i => i.decode().then(() => i.naturalWidth)") > 500


@pytest.mark.parametrize("lesson", lessons(FIRST_TIER))
def test_every_cell_runs_and_what_is_seen_is_what_is_stored(lab, lesson):
    lab.page.set_default_timeout(600_000)
    lab.open(f"notebooks/{lesson.file}")
    stored = lab.cells()
    assert lab.run_all() is True
    ran = lab.cells()
    assert errors(ran) == []
    assert said(ran) == said(stored)
    assert pictures(ran, run=False) == pictures(stored, run=False)
    assert seen_pictures(lab) == pictures(ran, run=True)
    assert lab.page.locator("[data-mime-type$='stderr']").count() == 0
    assert lab.page.locator(".jp-OutputArea-output .jp-RenderedText .ansi-red-fg").count() == 0
    lab.page.set_default_timeout(30_000)
    data = [o.get("data", {}) for c in ran for o in c.get("outputs", [])]
    assert play_all(lab) == sum("ringlab-player" in text_html(each) for each in data)
    assert move_all(lab) == sum(WIDGET in each for each in data)


def text_html(data):
    return "".join(data.get("text/html", ""))


def play_all(lab):
    """Step through and play every player of a lesson; how many there were."""
    players = lab.page.locator(".ringlab-player").all()
    for player in players:
        press = player.get_by_role("button", name="Step", exact=True)
        press.click()
        assert player.get_attribute("data-time") == "0"
        press.click()
        stepped = float(player.get_attribute("data-time"))
        assert stepped > 0
        player.get_by_role("button", name="Play", exact=True).click()
        lab.page.wait_for_function(
            "([host, from]) => Number(host.dataset.time) > from",
            arg=[player.element_handle(), stepped],
        )
    return len(players)


def move_all(lab):
    """Move a slider of every widget of a lesson by the keyboard, and see the picture follow."""
    widgets = lab.page.locator(".jp-OutputArea-output:has(.jupyter-widgets)").all()
    for widget in widgets:
        slider = widget.get_by_role("slider").first
        before = widget.locator("img").get_attribute("alt")
        slider.focus()
        slider.press("ArrowLeft")
        lab.page.wait_for_function(
            "([image, before]) => image && image.isConnected ? image.alt !== before : true",
            arg=[widget.locator("img").element_handle(), before],
        )
        assert widget.locator("img").get_attribute("alt") != before
        controls = widget.get_by_role("slider").count() + widget.locator("select").count()
        labels = [text for text in widget.locator(".widget-label").all_text_contents() if text]
        assert len(labels) == controls
    return len(widgets)


def test_the_tests_above_move_every_kind_of_thing_that_moves():
    """Some lesson has a player and some lesson a slider, so that none of the two goes untested."""
    code = "\n".join(c.source for each in written() for c in each.read().cells)
    assert "play(" in code
    assert "memory_calculator(" in code
