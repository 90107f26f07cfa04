"""The player in JupyterLab: in a fresh clone, after a run, and in a notebook opened again."""

import base64

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from ringlab.draw import play
from tests.draw.made import ring

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(300)]

METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
SOURCE = "from ringlab.draw import play\nfrom tests.draw.made import ring\nplay(ring(3))"


def store(folder, *, outputs):
    cells = [
        new_code_cell(SOURCE, id="play-00", execution_count=1, outputs=outputs),
        new_code_cell("1 + 1", id="play-01"),
    ]
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), folder / "player.ipynb")


def stored_output():
    data = play(ring(3))._repr_mimebundle_()
    return new_output("execute_result", data, execution_count=1)


def test_an_untrusted_fresh_clone_shows_the_picture_with_its_words(lab):
    store(lab.folder, outputs=[stored_output()])
    lab.open("player.ipynb")
    image = lab.page.locator(".jp-OutputArea-output img")
    image.wait_for()
    assert image.evaluate("i => i.decode().then(() => i.naturalWidth)") > 500
    assert image.get_attribute("alt").startswith("A timeline of")
    kind, data = image.get_attribute("src").split(",")
    assert kind == "data:image/svg+xml;base64"
    assert b'id="stage"' in base64.b64decode(data)
    assert lab.page.get_by_role("button", name="Step", exact=True).count() == 0
    assert "ringlabPlayer" not in lab.page.locator(".jp-OutputArea-output").inner_text()


def test_it_plays_after_a_run_and_again_without_a_kernel_when_it_is_opened_again(lab):
    lab.page.set_default_timeout(60_000)
    store(lab.folder, outputs=[])
    elsewhere = []
    here = (lab.address, lab.address.replace("http", "ws"), "data:", "blob:", "about:")
    lab.page.on("request", lambda request: elsewhere.append(request.url))
    lab.open("player.ipynb")
    assert lab.run_all() is True
    host = lab.page.locator(".ringlab-player")
    host.get_by_role("button", name="Step", exact=True).click()
    assert host.get_attribute("data-time") == "0"

    active = "() => jupyterapp.shell.currentWidget.content.activeCellIndex"
    cells = "() => jupyterapp.shell.currentWidget.content.model.cells.length"
    host.click(position={"x": 300, "y": 60})
    before = lab.page.evaluate(active)
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "End", "Home", "ArrowRight", "a", "b"):
        lab.page.keyboard.press(key)
    assert float(host.get_attribute("data-time")) > 0
    assert host.get_by_role("combobox").input_value() == "0"
    assert lab.page.evaluate(active) == before
    assert lab.page.evaluate(cells) == 2

    lab.page.evaluate("async () => { await jupyterapp.commands.execute('docmanager:save');"
                      " await jupyterapp.serviceManager.sessions.shutdownAll(); }")  # fmt: skip
    lab.page.goto("about:blank")
    lab.page.goto(f"{lab.address}/lab/tree/player.ipynb?token=test&reset")
    host = lab.page.locator(".ringlab-player")
    host.get_by_role("button", name="Step", exact=True).click()
    host.get_by_role("button", name="Step", exact=True).click()
    assert float(host.get_attribute("data-time")) > 0
    assert [url for url in elsewhere if not url.startswith(here)] == []
