"""Each lesson in a real JupyterLab in a real browser, as a learner meets it."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LESSONS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("name", LESSONS)
def test_an_untrusted_fresh_clone_shows_text_formulas_and_pictures(lab, name):
    lab.open(f"notebooks/{name}")
    stored = sum("image/png" in o.get("data", {}) for c in lab.cells() for o in c["outputs"])
    assert stored
    scroll = (
        "async () => { const panel = jupyterapp.shell.currentWidget.content;"
        " for (let i = 0; i < panel.widgets.length; i++) { panel.activeCellIndex = i;"
        " await panel.scrollToItem(i); await new Promise(r => setTimeout(r, 60)); } }"
    )
    lab.page.evaluate(scroll)
    seen = lab.page.evaluate(
        "() => [...document.querySelectorAll('.jp-RenderedImage img')]"
        ".filter(i => i.naturalWidth > 100).length"
    )
    assert seen == stored
    assert lab.page.locator("mjx-container").count() > 3


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.timeout(400)
def test_every_cell_runs_in_the_browser(lab, name):
    lab.page.set_default_timeout(300_000)
    lab.open(f"notebooks/{name}")
    assert lab.run_all() is True
    code = [c for c in lab.cells() if c["type"] == "code"]
    assert not [o for c in code for o in c["outputs"] if o["output_type"] == "error"]
    assert sum("image/png" in o.get("data", {}) for c in code for o in c["outputs"])
