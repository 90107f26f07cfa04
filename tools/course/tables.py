"""The tables that are made of the manifest: in the README, and at the head of each lesson."""

from __future__ import annotations

import re

from tools.course.manifest import Lesson, course, written

HOW_TO_WORK = (
    "clear the stored results first (menu *Edit*, *Clear Outputs of All Cells*). Before most "
    "experiments there is a *Predict* box: write your answer down, run the cell, then unfold "
    "the answer"
)
GPUS = {
    "none": "none used",
    "optional": "none needed; where there are two or more, a cell runs on them",
}
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def lessons_table(lessons: list[Lesson] | None = None) -> str:
    """The README's table of the lessons that there are, in Markdown."""
    rows = ["| lesson | minutes | what you will be able to do |", "| --- | --- | --- |"]
    rows += [
        f"| [{each.name}](notebooks/{each.file}) | {each.minutes} | {each.able} |"
        for each in written(lessons)
    ]
    return "\n".join(rows)


def head_table(lesson: Lesson, lessons: list[Lesson] | None = None) -> str:
    """The table at the head of a lesson, in Markdown."""
    rows = {
        "You will be able to": lesson.able,
        "Minutes": f"{lesson.minutes}, and {lesson.minutes_for_tasks} more for the tasks",
        "You need first": f"{lesson.needs}. {_before(lesson, lessons or course())}",
        "GPUs": GPUS[lesson.gpus],
        "Exercises": _exercises(lesson),
        "How to work": HOW_TO_WORK,
    }
    return "| | |\n|---|---|\n" + "\n".join(
        f"| **{key}** | {value} |" for key, value in rows.items()
    )


def _before(lesson: Lesson, lessons: list[Lesson]) -> str:
    names = [
        f"[{each.name}]({each.file})" if each.written else each.name
        for each in lessons
        if each.number in lesson.after
    ]
    return f"Lessons before: {', '.join(names)}" if names else "Nothing from other lessons"


def _exercises(lesson: Lesson) -> str:
    links = [f"[{name}](../exercises/{name})" for name in lesson.exercises]
    return ", ".join(links) or "the tasks at the end, with folded answers"


def with_head(source: str, lesson: Lesson, lessons: list[Lesson] | None = None) -> str:
    """The source of a lesson's first cell with the table in it replaced.

    Raises
    ------
    ValueError
        If the cell has no table, or does not begin with the lesson's number and title.
    """
    if not source.startswith(f"# {lesson.number} · {lesson.title}\n"):
        raise ValueError(f"{lesson.file} does not begin with '# {lesson.number} · {lesson.title}'.")
    if not TABLE.search(source):
        raise ValueError(f"{lesson.file} has no table at its head.")
    return TABLE.sub(lambda _: head_table(lesson, lessons) + "\n", source, count=1)
