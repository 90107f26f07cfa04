"""``ringlab grade``: a folder of students' notebooks, graded into a table and pages."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from ringlab.grade.bulk import pages, students, tables
from ringlab.grade.bulk.grades import Sheet
from ringlab.grade.bulk.grading import Assignment, Records, grade
from ringlab.grade.case import Case
from ringlab.grade.hidden import hidden_cases
from ringlab.grade.isolation import landlock
from ringlab.grade.isolation.limits import MIB, Limits
from ringlab.grade.registry import all_exercises, exercise


def main(argv: Sequence[str]) -> int:
    """Grade a class.

    Parameters
    ----------
    argv : sequence of str

    Returns
    -------
    int
        0 if every student has a row.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        found = students.find(options.submissions)
        assignment = _assignment(options)
    except ValueError as error:
        parser.error(str(error))
    if not landlock.version():
        print("This system has no Landlock: answers can read files and reach the network. "
              "Grade in a container.", flush=True)  # fmt: skip
    sheets = grade(found, assignment, Records(options.records), workers=options.workers, told=_tell)
    hidden = bool(assignment.hidden)
    tables.write_csv(sheets, options.csv)
    if options.html:
        pages.write_class(sheets, options.html, hidden=hidden)
    if options.feedback:
        options.feedback.mkdir(parents=True, exist_ok=True)
        for sheet in sheets:
            pages.write_feedback(sheet, options.feedback)
    if options.nbgrader:
        tables.write_nbgrader(sheets, options.nbgrader, options.assignment)
    print(f"{len(sheets)} students, {'visible and hidden' if hidden else 'visible'} cases: "
          f"{options.csv}")  # fmt: skip
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ringlab grade",
        description="Grade the notebooks of a class. Each answer runs in processes of its own, "
        "with limits; a run that was broken off goes on where it stopped.",
        epilog="Example: ringlab grade submitted --solutions solutions --html report.html "
        "--feedback feedback. What it protects against, and what not: docs/grading.md.",
    )
    parser.add_argument("submissions", type=Path,
                        help="a folder with a folder, or a notebook, for each student")  # fmt: skip
    parser.add_argument("--csv", type=Path, default=Path("grades.csv"),
                        help="table to write, a row a student (default: %(default)s)")  # fmt: skip
    parser.add_argument("--html", type=Path, help="the page of the class to write")
    parser.add_argument("--feedback", type=Path,
                        help="folder for a page for each student, with nothing hidden")  # fmt: skip
    parser.add_argument("--nbgrader", type=Path, help="the same table as nbgrader exports it")
    parser.add_argument(
        "--assignment",
        default="ringlab",
        help="its name in nbgrader's table (default: %(default)s)",
    )
    parser.add_argument("--solutions", type=Path,
                        help="folder of the solutions, for the hidden cases")  # fmt: skip
    parser.add_argument("--lessons", help="grade only these, for example 02,03")
    parser.add_argument("--exercises", help="grade only these, for example ring_forward")
    parser.add_argument("--records", type=Path, default=Path(".ringlab-grades"),
                        help="folder in which finished students are kept between runs")  # fmt: skip
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1,
                        help="answers that run at a time (default: one a core)")  # fmt: skip
    parser.add_argument(
        "--seconds",
        type=float,
        default=Limits.seconds,
        help="wall time for each answer (default: %(default)s)",
    )
    parser.add_argument("--memory", type=int, default=Limits.memory // MIB,
                        help="MiB for each answer (default: %(default)s)")  # fmt: skip
    return parser


def _assignment(options: Namespace) -> Assignment:
    if options.workers < 1:
        raise ValueError(f"--workers must be at least 1, not {options.workers}.")
    wanted = [exercise(name) for name in _words(options.exercises)] or list(all_exercises())
    lessons = _words(options.lessons)
    known = {one.lesson for one in wanted}
    if unknown := [lesson for lesson in lessons if lesson not in known]:
        raise ValueError(f"lesson {unknown[0]} has no exercises; there are {sorted(known)}.")
    if lessons:
        wanted = [one for one in wanted if one.lesson in lessons]
    hidden: dict[str, tuple[Case, ...]] = {}
    if options.solutions is not None:
        paths = sorted(options.solutions.glob("*.ipynb"))
        if not paths:
            raise ValueError(f"{options.solutions} holds no notebooks of solutions.")
        for path in paths:
            hidden |= hidden_cases(path)
    limits = Limits(seconds=options.seconds, memory=options.memory * MIB)
    return Assignment(wanted, hidden, limits)


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()] if text else []


def _tell(sheet: Sheet, kept: bool) -> None:
    known = " (from the last run)" if kept else ""
    print(f"{sheet.student}: {sheet.points} of {sheet.most}{known}", flush=True)
