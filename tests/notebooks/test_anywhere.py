"""A lesson runs from any working directory, says the same there, and takes its time only."""

import time

import pytest
from nbclient import NotebookClient

from tools.course.manifest import written
from tools.run_notebooks import normalise

EACH, TOGETHER = 60.0, 300.0
"""Seconds on two quiet cores."""
SLACK = 5
"""A test fails only far beyond what is usual, since other programs may take the cores."""

FIRST_TIER = "04"
"""Number of the lesson that runs elsewhere in `make test`: a short one."""


def marks(lesson):
    return [] if lesson.number == FIRST_TIER else [pytest.mark.slow]


LESSONS = [pytest.param(lesson, marks=marks(lesson), id=lesson.file) for lesson in written()]

pytestmark = [pytest.mark.notebook, pytest.mark.processes]


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


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Run a lesson once, in a folder of its own: the notebook, the folder, and seconds."""
    done = {}

    def run(lesson):
        if lesson.file not in done:
            folder = tmp_path_factory.mktemp(lesson.number) / "a folder with blanks"
            folder.mkdir()
            notebook = lesson.read()
            where = {"metadata": {"path": str(folder)}}
            began = time.perf_counter()
            NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
            done[lesson.file] = notebook, folder, time.perf_counter() - began
            normalise(notebook)
        return done[lesson.file]

    return run


@pytest.mark.timeout(SLACK * EACH + 100)
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_says_the_same_in_a_folder_of_its_own(lesson, elsewhere):
    notebook, folder, seconds = elsewhere(lesson)
    assert compared(notebook) == compared(lesson.read())
    assert list(folder.iterdir()) == []
    assert seconds < SLACK * EACH


@pytest.mark.slow
@pytest.mark.timeout(SLACK * TOGETHER + 100)
def test_all_lessons_together_take_minutes(elsewhere, capsys):
    times = {lesson.name: elsewhere(lesson)[2] for lesson in written()}
    with capsys.disabled():
        print()
        for name, seconds in times.items():
            print(f"{name:>32}: {seconds:4.0f} s of {EACH:.0f} on quiet cores")
        print(f"{'together':>32}: {sum(times.values()):4.0f} s of {TOGETHER:.0f}")
    assert sum(times.values()) < SLACK * TOGETHER
