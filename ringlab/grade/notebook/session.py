"""The calls of a learner: check an answer, read a hint, see the progress, get the stub back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Exercise
from ringlab.grade.judge import Report, report
from ringlab.grade.notebook import feedback, front_end
from ringlab.grade.notebook.feedback import Feedback
from ringlab.grade.notebook.progress import Progress
from ringlab.grade.observation import Observation
from ringlab.grade.registry import all_exercises, exercise


def check(name: str, answer: Any) -> None:
    """Try an answer, and say what was tried, what was expected and what came.

    Parameters
    ----------
    name : str
        The exercise.
    answer : callable or class
        What was written, itself: ``check("ring_forward", ring_forward)``.

    Notes
    -----
    Shows a table of the checks, a picture of the messages that the answer sent, and what to do
    next. Of an answer that hangs, deadlocks or runs for ever it says so within seconds. The
    attempt is noted in ``progress.jsonl``, beside the notebook.
    """
    entry, record = exercise(name), Progress()
    tried, judged = _try(entry, answer, ())
    record.attempt(name, judged.points, judged.passed)
    front_end.show(Feedback(judged, feedback.advice(judged, record.of(name).hints)))
    drawn = feedback.picture(judged, tried)
    if drawn is not None:
        front_end.show(drawn)


def points(name: str, answer: Any, *, hidden: Sequence[dict[str, Any]] = ()) -> float:
    """Points of an answer, for a grader that runs notebooks, as nbgrader does.

    Parameters
    ----------
    name : str
    answer : callable or class
    hidden : sequence of dict
        Further cases, as `Case.from_plain` takes them.

    Returns
    -------
    float
        As the last value of a graded cell, nbgrader takes it for partial credit.
    """
    cases = [Case.from_plain(case) for case in hidden]
    return float(_try(exercise(name), answer, cases)[1].points)


def hint(name: str) -> None:
    """Show the next hint: where to look, then how, then where the solution is.

    Parameters
    ----------
    name : str
    """
    entry, record = exercise(name), Progress()
    tier = record.of(name).hints + 1
    record.hint(name, min(tier, len(entry.hints)))
    if tier <= len(entry.hints):
        front_end.say(f"Hint {tier} of {len(entry.hints)}. {entry.hints[tier - 1]}")
        return
    for number, text in enumerate(entry.hints, 1):
        front_end.say(f"Hint {number}. {text}")
    front_end.say(
        f"There are no more hints. The solution, and why: {feedback.where_solution(entry)}"
    )


def progress() -> None:
    """Show all exercises: solved or not, points, attempts, hints read."""
    standings, rows = Progress().standings(), []
    entries = list(all_exercises())
    for entry in entries:
        standing = standings.get(entry.name)
        tried = (f"{standing.attempts}", f"{standing.hints}") if standing else ("", "")
        best = standing.best if standing else 0
        mark = "✓" if standing and standing.solved else ""
        rows.append((entry.lesson, entry.name, mark, f"{best} of {entry.points}", *tried))
    known = [standings[entry.name] for entry in entries if entry.name in standings]
    front_end.say(
        f"{sum(one.solved for one in known)} of {len(entries)} exercises solved, "
        f"{sum(one.best for one in known)} of "
        f"{sum(entry.points for entry in entries)} points."
    )
    head = ("lesson", "exercise", "solved", "points", "attempts", "hints")
    front_end.show(front_end.Table(head, rows))


def reset(name: str) -> None:
    """Give the stub of an exercise back, in a new cell below this one.

    Other answers, and the record of progress, stay as they are; so does the old answer, until
    the new cell has been run.

    Parameters
    ----------
    name : str
    """
    front_end.new_cell(stub(exercise(name).name))


def stub(name: str) -> str:
    """The text of an exercise's cell before anything has been written."""
    lesson = exercise(name).lesson
    folder = resources.files("ringlab.grade") / "stubs" / f"lesson_{lesson}"
    return (folder / f"{name}.txt").read_text(encoding="utf-8")


def _try(
    entry: Exercise, answer: Callable[..., Any], hidden: Sequence[Case]
) -> tuple[list[tuple[Case, Observation]], Report]:
    tried: list[tuple[Case, Observation]] = []
    for case in (*entry.cases, *hidden):
        seen = entry.look(answer, case)
        tried.append((case, seen))
        if seen.failure is not None and seen.failure.hung:
            break  # it would take the deadline again in every case
    return tried, report(entry, tried)
