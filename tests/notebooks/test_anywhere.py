"""A lesson runs from any working directory, and says the same there."""

import pytest
from nbclient import NotebookClient

from tools.course.manifest import written
from tools.run_notebooks import normalise

LESSONS = written()

pytestmark = [pytest.mark.slow, pytest.mark.notebook, pytest.mark.processes]


def compared(notebook):
    """What nbval would compare: text outputs of cells that are not tagged to be ignored."""
    return {
        cell.id: [
            output.get("text") or output.get("data", {}).get("text/plain")
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code" and "nbval-ignore-output" not in cell.metadata.get("tags", [])
    }


@pytest.mark.timeout(400)
@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.file for lesson in LESSONS])
def test_a_lesson_says_the_same_in_a_folder_of_its_own(lesson, tmp_path):
    elsewhere = tmp_path / "a folder with blanks"
    elsewhere.mkdir()
    notebook = lesson.read()
    where = {"metadata": {"path": str(elsewhere)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    normalise(notebook)
    assert compared(notebook) == compared(lesson.read())
    assert list(elsewhere.iterdir()) == []
