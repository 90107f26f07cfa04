"""Grades as tables: a row for every student."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from ringlab.grade.bulk.grades import Sheet

NBGRADER = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name",
            "email", "raw_score", "late_submission_penalty", "score", "max_score")  # fmt: skip
"""The columns of ``nbgrader export`` (nbgrader 0.9, plugins/export.py)."""


def write_csv(sheets: Sequence[Sheet], path: Path) -> None:
    """One row a student: points in all, and for each exercise points and state."""
    names = [grade.exercise for grade in sheets[0].grades] if sheets else []
    columns = [f"{name} {what}" for name in names for what in ("points", "state")]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", "points", "most", *columns, "remarks"])
        for sheet in sheets:
            cells = [value for g in sheet.grades for value in (g.points, _safe(g.state))]
            remarks = " ".join(sheet.remarks)
            table.writerow([_safe(sheet.student), sheet.points, sheet.most, *cells, _safe(remarks)])


def write_nbgrader(sheets: Sequence[Sheet], path: Path, assignment: str) -> None:
    """One row a student, in the form that ``nbgrader export`` writes."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, NBGRADER, restval="")
        table.writeheader()
        for sheet in sheets:
            table.writerow({
                "assignment": _safe(assignment), "timestamp": now,
                "student_id": _safe(sheet.student),
                "raw_score": float(sheet.points), "late_submission_penalty": 0.0,
                "score": float(sheet.points), "max_score": float(sheet.most),
            })  # fmt: skip


def _safe(text: str) -> str:
    """A text that no spreadsheet takes for a formula, on one line."""
    line = " ".join(text.split())
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line
