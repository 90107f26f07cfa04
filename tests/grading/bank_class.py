"""A class drawn from the bank of answers: what everybody writes, and what it must earn."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ringlab.grade.notebook.session import stub
from ringlab.grade.registry import all_exercises, exercise
from tests.exercises.collection import RIGHT, Entry, entries, exercises, judged
from tests.grading.bank_cells import as_cell
from tests.grading.hostile import hostile_cell
from tests.grading.notebooks import answers, solution

WRONG_FORMS = 8
"""Wrong answers of an exercise that a class makes between them."""
HOSTILE = ("os._exit(0)", "C loop", "fork bomb", "memory in pieces", "prints for ever")
HOSTILE_LESSON = "06"
"""Where a hostile learner's answers are hostile; in the others they are the solutions."""


@dataclass(frozen=True)
class Answer:
    """What somebody writes for one exercise.

    Attributes
    ----------
    text : str
        Of the cell.
    points : int
        What it earns, by the judge alone.
    mistake : str
        What it is told, or empty.
    kind : str
        ``"right"``, ``"wrong"``, ``"blank"`` or ``"hostile"``.
    """

    text: str
    points: int
    mistake: str
    kind: str


@dataclass
class Learner:
    """Somebody who hands in: answers by exercise; what is not among them is missing."""

    name: str
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def points(self) -> int:
        """In all."""
        return sum(answer.points for answer in self.answers.values())

    def hand_in(self, folder: Path) -> None:
        """Write a notebook for each lesson of which there is an answer, into a folder."""
        (folder / self.name).mkdir(parents=True)
        lessons = sorted({exercise(name).lesson for name in self.answers})
        for lesson in lessons:
            texts = {n: a.text for n, a in self.answers.items() if exercise(n).lesson == lesson}
            path = folder / self.name / f"lesson {lesson} of {self.name}.ipynb"
            path.write_text(json.dumps(answers(texts)), encoding="utf-8")


def drawn_class(size: int, hostile: int, names: Sequence[str] = (), seed: int = 7) -> list[Learner]:
    """A class of `size`, the last `hostile` of them hostile; all exercises if none is named.

    The first writes the solutions, the second nothing, and the others from all to none of their
    answers right.
    """
    draw = random.Random(seed)
    asked = list(names) or [one.name for one in all_exercises()]
    honest = size - hostile
    learners = [Learner("000 solutions"), Learner("001 blank")]
    for name in asked:
        learners[0].answers[name] = right(name)
        learners[1].answers[name] = blank(name)
    for number in range(2, honest):
        skill = number / honest
        learners.append(Learner(f"{number:03} learner"))
        for name in asked:
            if (answer := _drawn(name, skill, draw)) is not None:
                learners[-1].answers[name] = answer
    for number in range(hostile):
        kind = HOSTILE[number % len(HOSTILE)]
        learners.append(Learner(f"{honest + number:03} {kind}"))
        learners[-1].answers.update(_hostile(kind, asked))
    return learners


def _drawn(name: str, skill: float, draw: random.Random) -> Answer | None:
    if draw.random() < skill:
        return draw.choice([right(name), *(written(entry) for entry in _entries(name, RIGHT))])
    if draw.random() < 0.2:
        return draw.choice([None, blank(name)])
    return written(draw.choice(_entries(name, "wrong")))


def _hostile(kind: str, asked: Sequence[str]) -> Iterator[tuple[str, Answer]]:
    for name in asked:
        if exercise(name).lesson == HOSTILE_LESSON:
            yield name, Answer(hostile_cell(kind, name), 0, "", "hostile")
        else:
            yield name, right(name)


@cache
def _entries(name: str, kind: str) -> tuple[Entry, ...]:
    """Right answers to an exercise, or as many wrong ones as a class makes."""
    found = [e for e in entries() if e.exercise == name and (e.mistake == RIGHT) == (kind == RIGHT)]
    few = min(len(found), WRONG_FORMS)
    return tuple(found if kind == RIGHT else random.Random(name).sample(found, few))


@cache
def written(entry: Entry) -> Answer:
    """An answer of the bank; its points are those that the judge gives it without isolation."""
    report = judged(exercises()[entry.exercise], entry.answer, also_hidden=True)
    if entry.mistake == RIGHT:
        return Answer(as_cell(entry), report.exercise.points, "", RIGHT)
    return Answer(as_cell(entry), report.points, entry.mistake, "wrong")


@cache
def right(name: str) -> Answer:
    """The solution."""
    return Answer(solution(name), exercise(name).points, "", RIGHT)


@cache
def blank(name: str) -> Answer:
    """The cell as it was handed out."""
    return Answer(stub(name), 0, "", "blank")
