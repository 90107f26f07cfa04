"""The bank of answers: what stands in it, and what is run with it.

``bank/<exercise>/*.py`` hold answers whose names say what must come of them: ``right_a`` earns all
points, ``no_scale_b`` is rejected with the hint of the mistake ``no_scale``. Each mistake stands
there in two differently written forms, ``_a`` and ``_b``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ringlab.grade.case import Case
from ringlab.grade.exercise import Exercise
from ringlab.grade.hidden import hidden_cases
from ringlab.grade.judge import Report, report
from ringlab.grade.observation import Observation
from ringlab.grade.registry import all_exercises
from tools.exercises.files import solutions

BANK = Path(__file__).parent / "bank"
NAME = re.compile(r"(\w+)_([a-z])")
RIGHT = "right"


class Entry(NamedTuple):
    """An answer of the bank: `mistake` is what it must be told, or `RIGHT`."""

    exercise: str
    mistake: str
    form: str
    answer: Any

    @property
    def id(self) -> str:
        return f"{self.exercise}-{self.mistake}-{self.form}"


@cache
def entries() -> tuple[Entry, ...]:
    return tuple(entry for folder in sorted(BANK.iterdir()) for entry in _in_folder(folder))


def _in_folder(folder: Path) -> Iterator[Entry]:
    for path in sorted(folder.glob("*.py")):
        module = import_module(f"tests.exercises.bank.{folder.name}.{path.stem}")
        for name, answer in vars(module).items():
            found = NAME.fullmatch(name)
            if found and callable(answer):
                yield Entry(folder.name, found[1], found[2], answer)


@cache
def exercises() -> dict[str, Exercise]:
    return {entry.name: entry for entry in all_exercises()}


@cache
def hidden() -> dict[str, tuple[Case, ...]]:
    return {name: cases for path in solutions() for name, cases in hidden_cases(path).items()}


def judged(exercise: Exercise, answer: Any, *, also_hidden: bool) -> Report:
    """Run and judge an answer, with every observation sent as bytes on the way."""
    cases = (*exercise.cases, *(hidden()[exercise.name] if also_hidden else ()))
    seen = [Observation.from_bytes(exercise.look(answer, case).to_bytes()) for case in cases]
    return report(exercise, list(zip(cases, seen, strict=True)))
