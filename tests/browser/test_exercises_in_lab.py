"""An exercise in a real JupyterLab, as a learner works on it: from the stub to the answer."""

import json
from pathlib import Path

import pytest

from ringlab.grade.notebook.session import stub
from ringlab.grade.registry import all_exercises, exercise
from tests.exercises.collection import entries
from tests.grading.bank_cells import as_cell
from tests.grading.notebooks import solution
from tools.exercises.files import EXERCISES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

NAME = "ring_forward"
CHECK = f"check_{NAME}"
OTHER = "rotation_table"
ALL = list(all_exercises())

PLACE = """id => jupyterapp.shell.currentWidget.content.widgets.findIndex(
    w => w.model.sharedModel.metadata.nbgrader?.grade_id === id)"""
SELECT = """async at => {
    const c = jupyterapp.shell.currentWidget.content;
    c.deselectAll(); c.activeCellIndex = at; await c.scrollToItem(at); }"""


class Exercises:
    """The notebook of a lesson's exercises, opened, with cells known by their grade_id."""

    def __init__(self, lab, lesson):
        (path,) = EXERCISES.glob(f"{lesson}_*.ipynb")
        self.page, self.lab, self.folder = lab.page, lab, lab.folder / "exercises"
        lab.page.set_default_timeout(60_000)
        lab.open(f"exercises/{path.name}")

    def place(self, grade_id):
        """Select a cell; its place in the notebook."""
        at = self.page.evaluate(PLACE, grade_id)
        assert at >= 0, grade_id
        self.page.evaluate(SELECT, at)
        return at

    def write(self, grade_id, text):
        """Replace the text of a cell by the keyboard."""
        at = self.place(grade_id)
        self.page.locator(f'.jp-Cell[data-windowed-list-index="{at}"] .cm-content').click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text.strip())
        self.page.keyboard.press("Escape")

    def run(self, *grade_ids):
        """Run cells; the words below the last of them."""
        for grade_id in grade_ids:
            at = self.place(grade_id)
            self.page.evaluate("() => jupyterapp.commands.execute('notebook:run-cell')")
        return self.below(at)

    def run_below(self, grade_id, text):
        """Run a cell of one's own below another; the words below it."""
        at = self.place(grade_id) + 1
        self.page.evaluate("() => jupyterapp.commands.execute('notebook:insert-cell-below')")
        self.page.evaluate(
            "text => jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel"
            ".setSource(text)", text,
        )  # fmt: skip
        self.page.evaluate("() => jupyterapp.commands.execute('notebook:run-cell')")
        return self.below(at)

    def below(self, at):
        """The words that a reader sees below a cell."""
        self.page.evaluate(SELECT, at)
        return self.cell(at).locator(".jp-Cell-outputWrapper").inner_text()

    def cell(self, at):
        """A cell as it is drawn."""
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{at}"]')

    def text(self, at):
        """The source of a cell."""
        return self.lab.cells()[at]["source"]

    def picture(self, grade_id):
        """The words for the picture below a cell, after a look that it is drawn."""
        at = self.place(grade_id)
        image = self.cell(at).locator(".jp-OutputArea-output img")
        image.wait_for()
        assert image.evaluate("i => i.decode().then(() => i.naturalWidth)") > 300
        (drawn,) = (o for o in self.lab.cells()[at]["outputs"] if "image/png" in o.get("data", {}))
        return "".join(drawn["data"]["text/plain"])


def wrong(mistake):
    (entry,) = [e for e in entries() if (e.exercise, e.mistake, e.form) == (NAME, mistake, "a")]
    return as_cell(entry)


def test_from_the_stub_by_a_mistake_to_the_answer_and_back(lab):
    notebook = Exercises(lab, "03")
    assert notebook.page.get_by_role("menuitem", name="Nbgrader").count() == 0
    assert notebook.page.get_by_role("button", name="Validate").count() == 0

    said = notebook.run("setup", OTHER, f"check_{OTHER}")
    assert "Nothing is written yet" in said
    assert "Traceback" not in said
    notebook.write(OTHER, solution(OTHER))
    assert "solved" in notebook.run(OTHER, f"check_{OTHER}")

    notebook.write(NAME, wrong("gathers_everything"))
    said = notebook.run(NAME, CHECK)
    assert "not yet, 5 of 10 points" in said
    assert exercise(NAME).mistake("gathers_everything").hint in said
    assert "bytes sent among" in notebook.picture(CHECK)
    aside = notebook.cell(notebook.place(CHECK)).locator("td").first
    assert aside.evaluate("cell => getComputedStyle(cell).textAlign") == "left"

    notebook.write(NAME, wrong("send_before_receive"))
    said = notebook.run(NAME, CHECK)
    assert exercise(NAME).mistake("send_before_receive").hint in said
    assert "ipykernel" not in said
    assert "waits for rank" in notebook.picture(CHECK)

    notebook.write(NAME, solution(NAME))
    assert "solved, 10 of 10 points" in notebook.run(NAME, CHECK)
    assert "5 ranks" in notebook.picture(CHECK)

    said = notebook.run_below(CHECK, "progress()")
    assert f"2 of {len(ALL)} exercises solved, 12 of" in said
    assert "10 of 10" in said

    at = notebook.place(CHECK) + 1
    notebook.run_below(CHECK, f'reset("{NAME}")')
    assert notebook.text(at + 1).strip() == stub(NAME).strip()
    assert notebook.text(notebook.place(NAME)) == solution(NAME).strip()
    assert notebook.text(notebook.place(OTHER)) == solution(OTHER).strip()


@pytest.mark.slow
def test_progress_survives_a_new_kernel(lab):
    notebook = Exercises(lab, "03")
    notebook.write(OTHER, solution(OTHER))
    notebook.run("setup", OTHER, f"check_{OTHER}")
    lines = (notebook.folder / "progress.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0]) == {"exercise": OTHER, "points": 2, "solved": True}
    notebook.page.evaluate(
        "() => jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()"
    )
    said = notebook.run_below("setup", "from ringlab.grade import progress\nprogress()")
    assert f"1 of {len(ALL)} exercises solved, 2 of" in said


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXERCISES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_that_nobody_wrote_in_runs_to_its_end(lab, path: Path):
    lab.page.set_default_timeout(120_000)
    lab.open(f"exercises/{path.name}")
    assert lab.run_all() is True
    code = [cell for cell in lab.cells() if cell["cell_type"] == "code"]
    assert not [out for cell in code for out in cell["outputs"] if out["output_type"] == "error"]
    checks = [cell for cell in code if cell["source"].startswith("check(")]
    assert len(checks) == sum(one.lesson == path.name[:2] for one in ALL)
    assert all("Nothing is written yet" in json.dumps(cell["outputs"]) for cell in checks)
