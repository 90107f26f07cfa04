"""Grading a class: in parallel, each question by itself, and where it stopped the last time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import ringlab
from ringlab.grade import plain
from ringlab.grade.bulk import questions
from ringlab.grade.bulk.grades import Grade, Sheet
from ringlab.grade.bulk.students import Student
from ringlab.grade.case import Case
from ringlab.grade.exercise import Exercise
from ringlab.grade.isolation.job import Ended, Job
from ringlab.grade.isolation.limits import Limits
from ringlab.grade.isolation.pool import Pool


@dataclass(frozen=True)
class Assignment:
    """What a class is graded on.

    Parameters
    ----------
    exercises : sequence of Exercise
    hidden : mapping of str to sequence of Case
        Hidden cases by exercise.
    limits : Limits
        Of each question.
    """

    exercises: Sequence[Exercise]
    hidden: Mapping[str, Sequence[Case]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def cases(self, exercise: Exercise) -> tuple[Case, ...]:
        """Visible and hidden cases of an exercise."""
        return (*exercise.cases, *self.hidden.get(exercise.name, ()))

    @cached_property
    def digest(self) -> str:
        """Changes when an exercise, a case, a limit or this package does."""
        total = hashlib.sha256(repr(self.limits).encode())
        for exercise in self.exercises:
            total.update(exercise.name.encode())
            total.update(repr([(c.name, c.points) for c in exercise.checks]).encode())
            for case in self.cases(exercise):
                total.update(plain.dump(case.as_plain()))
        for path in sorted(Path(ringlab.__file__).parent.rglob("*.py")):
            total.update(path.read_bytes())
        return total.hexdigest()


class Records:
    """Sheets that are kept between runs, one file a student.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, student: str) -> Path:
        return self.folder / f"{hashlib.sha256(student.encode()).hexdigest()[:24]}.json"

    def find(self, student: str, digest: str) -> Sheet | None:
        """The sheet of a student if it was made of the same notebooks and exercises."""
        try:
            sheet = Sheet.from_json(json.loads(self._path(student).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return sheet if (sheet.student, sheet.digest) == (student, digest) else None

    def keep(self, sheet: Sheet) -> None:
        """Store a sheet, whole or not at all."""
        path = self._path(sheet.student)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(sheet.as_json()), encoding="utf-8")
        fresh.replace(path)


@dataclass(eq=False)
class _Open:
    """A student whose grades are not all there."""

    student: Student
    digest: str
    grades: dict[str, Grade]


def grade(
    students: Sequence[Student],
    assignment: Assignment,
    records: Records,
    *,
    workers: int,
    told: Callable[[Sheet, bool], None] = lambda *_: None,
) -> list[Sheet]:
    """Grade a class.

    Parameters
    ----------
    students : sequence of Student
    assignment : Assignment
    records : Records
        Sheets found there are not made again.
    workers : int
        Questions that run at a time.
    told : callable
        Called with each sheet, and whether it was found in the records.

    Returns
    -------
    list of Sheet
        One for each student, in their order, whatever was handed in.
    """
    sheets: dict[str, Sheet] = {}
    open_: list[_Open] = []
    for student in students:
        digest = f"{student.digest}-{assignment.digest}"
        kept = records.find(student.name, digest)
        if kept is None:
            open_.append(_Open(student, digest, {}))
        else:
            sheets[student.name] = kept
            told(kept, True)

    def close(one: _Open) -> None:
        if one.student.name not in sheets and len(one.grades) == len(assignment.exercises):
            sheet = _sheet(one, assignment)
            records.keep(sheet)
            sheets[one.student.name] = sheet
            told(sheet, False)

    with Pool(workers) as pool:
        again: list[tuple[_Open, Exercise]] = []
        for (one, exercise), ended in pool.run(_jobs(open_, assignment, close)):
            if questions.worth_another_try(assignment.cases(exercise), ended):
                again.append((one, exercise))
            else:
                one.grades[exercise.name] = _judged(exercise, assignment, ended)
                close(one)
        for (one, exercise), ended in pool.run(_second(again, assignment)):
            one.grades[exercise.name] = _judged(exercise, assignment, ended)
            close(one)
    return [sheets[student.name] for student in students]


def _jobs(
    open_: Sequence[_Open], assignment: Assignment, close: Callable[[_Open], None]
) -> Iterator[tuple[tuple[_Open, Exercise], Job]]:
    for one in open_:
        for exercise in assignment.exercises:
            job = questions.job(
                exercise, assignment.cases(exercise), one.student.submissions, assignment.limits
            )
            if job is None:
                one.grades[exercise.name] = questions.missing(exercise)
            else:
                yield (one, exercise), job
        close(one)


def _second(
    again: Sequence[tuple[_Open, Exercise]], assignment: Assignment
) -> Iterator[tuple[tuple[_Open, Exercise], Job]]:
    for one, exercise in again:
        job = questions.job(
            exercise, assignment.cases(exercise), one.student.submissions, assignment.limits,
            everything=True,
        )  # fmt: skip
        if job is not None:
            yield (one, exercise), job


def _judged(exercise: Exercise, assignment: Assignment, ended: Ended) -> Grade:
    try:
        return questions.grade(exercise, assignment.cases(exercise), ended)
    except Exception as error:  # what came of an answer must cost no other answer
        message = f"the grader failed on it: {type(error).__name__}: {error}"
        return replace(questions.missing(exercise), state="grader", message=message)


def _sheet(one: _Open, assignment: Assignment) -> Sheet:
    grades = tuple(one.grades[exercise.name] for exercise in assignment.exercises)
    remarks = [text for submission in one.student.submissions for text in submission.remarks]
    if not one.student.paths:
        remarks.append("no notebook was handed in.")
    return Sheet(one.student.name, one.digest, grades, tuple(remarks))
