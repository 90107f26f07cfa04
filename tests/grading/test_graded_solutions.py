"""The solutions, handed in by a student, earn every point: no limit or ward is in their way."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ringlab.grade.bulk.grading import Assignment, Records, grade
from ringlab.grade.bulk.students import find
from ringlab.grade.hidden import hidden_cases
from ringlab.grade.registry import all_exercises
from tests.exercises.collection import entries
from tests.grading.bank_cells import as_cell
from tests.grading.graded import of, sheets
from tests.grading.notebooks import SOLUTIONS, answers, hand_in

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


@pytest.mark.slow
def test_every_solution_earns_all_its_points(tmp_path: Path) -> None:
    (tmp_path / "class" / "ann").mkdir(parents=True)
    hidden = {}
    for path in SOLUTIONS.glob("*.ipynb"):
        shutil.copy(path, tmp_path / "class" / "ann")
        hidden |= hidden_cases(path)
    exercises = [one for one in all_exercises() if one.name in hidden]
    assert len(exercises) > 10
    assignment = Assignment(exercises, hidden)
    (sheet,) = grade(find(tmp_path / "class"), assignment, Records(tmp_path / "records"), workers=1)
    short = [given for given in sheet.grades if given.points != given.most]
    assert not short
    assert {given.state for given in sheet.grades} == {"right"}


def test_an_answer_that_ignores_what_arrives_is_told_so(tmp_path: Path) -> None:
    """No foul is made of it: its results are wrong, and its hint says why."""
    (entry,) = (e for e in entries() if e.id == "ring_forward-ignores_what_arrives-a")
    hand_in(tmp_path / "class", "ann", answers({"ring_forward": as_cell(entry)}))
    grade = of(sheets(tmp_path / "class", tmp_path / "records", names=["ring_forward"],
                      workers=1)["ann"],
               "ring_forward")  # fmt: skip
    assert (grade.mistake, grade.state) == ("ignores_what_arrives", "partly"), grade
