"""Grading in tests: a few exercises, a folder of submissions, short limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringlab.grade.bulk.grades import Grade, Sheet
from ringlab.grade.bulk.grading import Assignment, Records, grade
from ringlab.grade.bulk.students import find
from ringlab.grade.isolation.limits import MIB, Limits
from ringlab.grade.registry import exercise
from tests.grading.notebooks import HIDDEN

SHORT = Limits(seconds=10.0, cpu_seconds=10, memory=1024 * MIB)
RING = ("rotation_table", "ring_forward", "ring_overlap")


def sheets(
    folder: Path,
    records: Path,
    *,
    names: Sequence[str] = RING,
    limits: Limits = SHORT,
    workers: int = 2,
) -> dict[str, Sheet]:
    """The sheets of all students in a folder."""
    assignment = Assignment([exercise(name) for name in names], HIDDEN, limits)
    made = grade(find(folder), assignment, Records(records), workers=workers)
    return {sheet.student: sheet for sheet in made}


def of(sheet: Sheet, name: str) -> Grade:
    """The grade of one exercise."""
    return next(grade for grade in sheet.grades if grade.exercise == name)
