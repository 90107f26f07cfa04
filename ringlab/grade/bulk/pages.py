"""Pages of a graded class: one for the class, one for each student."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ringlab.grade.bulk import page
from ringlab.grade.bulk.grades import Grade, Sheet

BINS = 10
COMMONEST = 20
NOTHING = ("missing", "not written")
"""States of an answer that is not there, of which no mistake can be told."""


def write_class(sheets: Sequence[Sheet], path: Path, *, hidden: bool) -> None:
    """The page of a class: distribution, commonest mistakes, exercises, students.

    Parameters
    ----------
    sheets : sequence of Sheet
    path : Path
    hidden : bool
        Whether hidden cases were among those tried; the page says so.
    """
    tried = "visible and hidden cases" if hidden else "visible cases only: no solutions were given"
    unsealed = sum(not grade.sealed for sheet in sheets for grade in sheet.grades)
    mean = sum(sheet.points for sheet in sheets) / len(sheets)
    warning = (
        f"{unsealed} answers ran unsealed: this system could not keep them from files, network "
        "and other processes."
        if unsealed
        else ""
    )
    parts = [
        f"<h1>{len(sheets)} submissions</h1>",
        page.paragraph(f"Graded on {tried}. Mean: {mean:.1f} of {sheets[0].most} points."),
        page.paragraph(warning),
        "<h2>Distribution</h2>",
        page.bars(("share of the points", "students", ""), _bins(sheets)),
        "<h2>Commonest mistakes</h2>",
        page.table(
            ("exercise", "mistake", "students", "what they are told"), _mistakes(sheets)
        ) or page.paragraph("None."),
        "<h2>Exercises</h2>",
        page.table(
            ("exercise", "right", "partly", "wrong", "not written", "mean points", "most"),
            _exercises(sheets),
        ),
        "<h2>Students</h2>",
        page.table(("student", "points", "most", "remarks"), _students(sheets)),
    ]  # fmt: skip
    page.write(path, "Grades", parts)


def write_feedback(sheet: Sheet, folder: Path) -> Path:
    """The page of one student; nothing of a hidden case is on it."""
    path = folder / f"{file_name(sheet.student)}.html"
    parts = [f"<h1>{escape(sheet.student)}: {sheet.points} of {sheet.most} points</h1>"]
    parts += [page.paragraph(remark) for remark in sheet.remarks]
    parts += [part for grade in sheet.grades for part in _feedback(grade)]
    page.write(path, f"Feedback for {sheet.student}", parts)
    return path


def file_name(student: str) -> str:
    """A file name for a student's page: safe on every system, different for each student."""
    plain = re.sub(r"[^a-z0-9_-]+", "_", student.lower()).strip("_")[:60]
    if plain and plain == student:
        return plain
    return f"{plain or 'student'}-{hashlib.sha256(student.encode()).hexdigest()[:8]}"


def _feedback(grade: Grade) -> Iterator[str]:
    said = f"{grade.state}: {grade.message}" if grade.message else grade.state
    yield f"<h2>{escape(grade.exercise)}: {grade.points} of {grade.most}</h2>"
    yield page.paragraph(f"{said[:1].upper()}{said[1:]}.".replace("..", "."))
    if 0 < grade.points < grade.most:
        yield page.table(("check", "points"), list(grade.earned.items()))
    if grade.points < grade.most:
        yield page.verbatim(grade.shown)
        yield page.paragraph(grade.hint)
        yield page.verbatim(grade.notes)


def _bins(sheets: Sequence[Sheet]) -> Iterator[tuple[str, int]]:
    counts = Counter(
        min(BINS - 1, BINS * sheet.points // sheet.most) if sheet.most else 0 for sheet in sheets
    )
    for number in range(BINS):
        low, high = 100 * number // BINS, 100 * (number + 1) // BINS
        yield f"{low} to {high} %", counts[number]


def _mistakes(sheets: Sequence[Sheet]) -> Iterator[tuple[str, str, int, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    told: defaultdict[tuple[str, str], str] = defaultdict(str)
    for grade in (grade for sheet in sheets for grade in sheet.grades):
        if grade.points < grade.most and grade.state not in NOTHING:
            kind = grade.exercise, grade.mistake or grade.state
            counts[kind] += 1
            told[kind] = told[kind] or (grade.hint if grade.mistake else grade.message)
    for (exercise, mistake), count in counts.most_common(COMMONEST):
        yield exercise, mistake.replace("_", " "), count, told[exercise, mistake]


def _exercises(sheets: Sequence[Sheet]) -> Iterator[tuple[page.Cell, ...]]:
    for grades in zip(*(sheet.grades for sheet in sheets), strict=True):
        right = sum(grade.points == grade.most for grade in grades)
        partly = sum(0 < grade.points < grade.most for grade in grades)
        mean = sum(grade.points for grade in grades) / len(grades)
        nothing = sum(grade.state in NOTHING for grade in grades)
        wrong = len(grades) - right - partly - nothing
        yield grades[0].exercise, right, partly, wrong, nothing, mean, grades[0].most


def _students(sheets: Sequence[Sheet]) -> Iterator[tuple[page.Cell, ...]]:
    for sheet in sheets:
        yield sheet.student, sheet.points, sheet.most, " ".join(sheet.remarks)
