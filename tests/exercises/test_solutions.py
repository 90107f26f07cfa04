"""Solutions, stubs, and the notebooks that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from ringlab.grade.nbgrader import cells
from tests.exercises.collection import exercises, hidden, judged
from tools.exercises.files import EXERCISES, ROOT, lesson_of, read, solutions
from tools.exercises.form import exercises_in, role
from tools.exercises.products import left_over, products

every_notebook = pytest.mark.parametrize("path", solutions(), ids=lambda path: path.stem)
every_exercise = pytest.mark.parametrize("name", exercises())


def answers(path: Path) -> dict[str, Any]:
    """What the cells of a notebook define, without its checks."""
    namespace: dict[str, Any] = {}
    for cell in cells(path):
        if not cell.metadata.get("grade"):
            exec(compile(cell.source, f"{path.name}:{cell.grade_id}", "exec"), namespace)
    return namespace


def notebook_of(name: str, folder: Path) -> Path:
    return next(folder.glob(f"{exercises()[name].lesson}_*.ipynb"))


def test_what_is_generated_is_what_the_solutions_give():
    made = products()
    differ = [
        str(path.relative_to(ROOT))
        for path, text in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not differ, f"run python -m tools.exercises: {differ}"
    assert not left_over(made)


@every_exercise
def test_a_solution_earns_every_point(name: str):
    exercise = exercises()[name]
    answer = answers(notebook_of(name, ROOT / "solutions"))[exercise.answer]
    report = judged(exercise, answer, also_hidden=True)
    assert report.passed, report.worst
    assert report.points == exercise.points
    assert report.mistake is None


@every_exercise
def test_a_stub_fails_and_earns_nothing(name: str):
    exercise = exercises()[name]
    report = judged(
        exercise, answers(notebook_of(name, EXERCISES))[exercise.answer], also_hidden=True
    )
    assert report.points == 0
    assert report.mistake is None
    assert report.worst is not None
    assert report.worst.failure is not None
    assert report.worst.failure.not_written


@every_notebook
def test_a_notebook_holds_the_exercises_of_its_lesson_in_their_order(path: Path):
    lesson = [e.name for e in exercises().values() if e.lesson == lesson_of(path)]
    assert exercises_in(read(path)) == lesson


@every_exercise
def test_each_exercise_has_hidden_cases_of_the_same_options(name: str):
    visible, kept = exercises()[name].cases, hidden()[name]
    options = {option for case in visible for option in case.options} | {"batch", "head_dim"}
    assert kept
    assert all(case.hidden and set(case.options) <= options for case in kept)
    assert not {case.title for case in kept} & {case.title for case in visible}


@every_notebook
def test_a_learner_gets_neither_solutions_nor_hidden_tests(path: Path):
    text = (EXERCISES / path.name).read_text(encoding="utf-8")
    assert "SOLUTION" not in text
    assert "HIDDEN" not in text
    assert "hidden=" not in text
    titles = [case.title for cases in hidden().values() for case in cases]
    assert not [title for title in titles if title in text]


@every_notebook
def test_only_answers_can_be_edited(path: Path):
    for cell in read(EXERCISES / path.name).cells:
        if cell.cell_type == "code":
            assert cell.metadata.deletable is False
            assert cell.metadata.get("editable", True) is (role(cell)[1] == "answer")


@every_notebook
def test_the_notebooks_are_valid_and_empty_of_outputs(path: Path):
    for folder in (path.parent, EXERCISES):
        notebook = read(folder / path.name)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code)


@every_exercise
def test_an_exercise_says_what_a_learner_needs_to_know(name: str):
    exercise = exercises()[name]
    assert 1 <= exercise.difficulty <= 5
    assert 5 <= exercise.minutes <= 60
    assert len(exercise.hints) == 2
    assert all(len(text) > 40 for text in exercise.hints)
    assert all(check.points > 0 for check in exercise.checks)
    assert all(len(mistake.hint) > 40 for mistake in exercise.mistakes)
    assert not exercise.objective.endswith(".")
