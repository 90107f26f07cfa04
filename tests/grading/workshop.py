"""A dozen learners of a workshop, each of whom hands in something else, and what it earns."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringlab.grade.nbgrader import HIDDEN_BEGIN
from ringlab.grade.registry import exercise
from tests.exercises.collection import RIGHT, entries
from tests.grading import guide
from tests.grading.bank_class import Answer, blank, right, written
from tests.grading.hostile import hostile_cell
from tests.grading.notebooks import code

Answers = dict[str, Answer]


@dataclass(frozen=True)
class Handed:
    """What one learner hands in.

    Attributes
    ----------
    student : str
        As it shall stand in the table.
    expected : dict of str to int
        Points by exercise; an exercise that is not there earns nothing.
    told : dict of str to str
        The mistakes that are to be named, by exercise.
    """

    student: str
    expected: dict[str, int]
    told: dict[str, str]


def wrong(name: str, number: int = 0) -> Answer:
    """One of the bank's wrong answers, another for each number."""
    found = [e for e in entries() if e.exercise == name and e.mistake != RIGHT and e.form == "a"]
    return written(found[number % len(found)])


def hostile(name: str, kind: str) -> Answer:
    """An answer that ends the grading's patience, or the process."""
    return Answer(hostile_cell(kind, name), 0, "", "hostile")


def hand_in_all(handout: Path, submissions: Path, names: Sequence[str]) -> list[Handed]:
    """Let everybody hand in, by filling notebooks of the handout."""
    solved = {name: right(name) for name in names}
    mixed = {name: (right(name), wrong(name, 1))[at % 2] for at, name in enumerate(names)}
    third = [name for name in names if exercise(name).lesson == "03"]
    by_folder: dict[str, tuple[Answers, Callable[[Path], None] | None]] = {
        "all-right": (solved, None),
        "all-wrong": ({name: wrong(name) for name in names}, None),
        "all-blank": ({name: blank(name) for name in names}, None),
        "half-right": (mixed, None),
        "other-half": ({n: wrong(n, 1) if n in third else solved[n] for n in names}, None),
        "prints-for-ever": (solved | {names[0]: hostile(names[0], "prints for ever")}, None),
        "leaves-at-once": ({name: hostile(name, "os._exit(0)") for name in names}, None),
        "asked-for-reset": (solved, _empty_cells_at_the_end),
        "own-cells": (solved, _own_cells),
        "cut-short": ({}, _cut_short),
        "nothing": ({}, None),
    }
    handed = []
    for student, (answered, changed) in by_folder.items():
        (submissions / student).mkdir(parents=True)
        for path in _filled(handout, submissions / student, answered):
            if changed is not None:
                changed(path)
        if changed is _cut_short:
            _cut_short(Path(shutil.copy(handout / "exercises/03_the_ring.ipynb",
                                        submissions / student)))  # fmt: skip
        handed.append(_handed(student, answered))
    return handed + _as_the_guide_shows(handout, submissions, {n: solved[n] for n in third})


def _as_the_guide_shows(handout: Path, submissions: Path, answered: Answers) -> list[Handed]:
    """Notebooks of the third lesson, named and placed as in the guide."""
    handed = []
    for place in map(Path, guide.places()):
        (made,) = _filled(handout, submissions / "aside", answered)
        (submissions / place).parent.mkdir(parents=True, exist_ok=True)
        made.rename(submissions / place)
        (submissions / "aside").rmdir()
        handed.append(_handed(place.parts[0].removesuffix(".ipynb"), answered))
    return handed


def _handed(student: str, answered: Answers) -> Handed:
    points = {name: answer.points for name, answer in answered.items()}
    told = {name: answer.mistake for name, answer in answered.items() if answer.mistake}
    return Handed(student, points, told)


def _filled(handout: Path, folder: Path, answered: Answers) -> list[Path]:
    """Copies of the notebooks that ask for these answers, with the answers written in."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for lesson in sorted({exercise(name).lesson for name in answered}):
        (source,) = (handout / "exercises").glob(f"{lesson}_*.ipynb")
        notebook = json.loads(source.read_text(encoding="utf-8"))
        assert HIDDEN_BEGIN not in str(notebook)
        for cell in notebook["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
            if name in answered:
                cell["source"] = answered[name].text
        made.append(folder / source.name)
        made[-1].write_text(json.dumps(notebook), encoding="utf-8")
    return made


def _add(path: Path, cells: Sequence[dict[str, Any]], *, first: bool = False) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    own = list(cells)
    notebook["cells"] = own + notebook["cells"] if first else notebook["cells"] + own
    path.write_text(json.dumps(notebook), encoding="utf-8")


def _empty_cells_at_the_end(path: Path) -> None:
    lesson = path.name[:2]
    names = guide.exercises_planned("Three hours")
    _add(path, [code(blank(n).text) for n in names if exercise(n).lesson == lesson])


def _own_cells(path: Path) -> None:
    text = ["%matplotlib inline", "while True:\n    pass", "def f(:", "import not_there"]
    _add(path, [code(each) for each in text], first=True)


def _cut_short(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
