"""What a learner is told after a check: as text, and as a table where there is a notebook."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from ringlab.draw import Picture, draw_deadlock
from ringlab.grade.case import Case
from ringlab.grade.exercise import Exercise
from ringlab.grade.judge import Report
from ringlab.grade.notebook.front_end import Table
from ringlab.grade.observation import Failure, Observation
from ringlab.world import Deadlock, PeerLeft, Wait

LONGEST = 40
"""Lines of a failure's report that are shown."""

CELL = re.compile(r'"[^"\n]*ipykernel_\d+[/\\]\d+\.py"')
"""The file that a notebook's kernel gives to a cell in tracebacks."""

FAILURES = {
    "Deadlock": "Ranks wait for one another; the picture shows which, and at which lines.",
    "PeerLeft": "A rank waits for one that has returned: every send needs its receive.",
    "UnmatchedOperation": "Something was sent or awaited that has no other end.",
    "UnwaitedHandle": "A send or receive was started and never waited for.",
    "MessageMismatch": "The two ends of a message do not agree on shape or dtype.",
    "BufferHazard": "A tensor was touched while a message was still using it.",
    "NotPlain": "What the answer returns cannot be judged.",
    "NotCallable": "Pass the function or class itself, without calling it.",
}
"""What happened, in a sentence, where no mistake of the exercise is known to be behind it."""


@dataclass(frozen=True)
class Feedback:
    """The answer to ``check``; shows itself in a notebook, and prints as text elsewhere.

    Attributes
    ----------
    report : Report
    advice : str
        What to do next.
    """

    report: Report
    advice: str

    @property
    def headline(self) -> str:
        """One line: solved or not, and the points."""
        report = self.report
        state = "solved" if report.passed else "not yet"
        cases = len(report.findings)
        return (
            f"{report.exercise.name}: {state}, {report.points} of {report.exercise.points} points "
            f"in {cases} case{'s' * (cases > 1)}"
        )

    @property
    def tried(self) -> str:
        """One line: the cases, and in which of them all was right."""
        marks = [f"{_title(f.case)} {'✓' if f.passed else '✗'}" for f in self.report.findings]
        return f"Tried with: {'; '.join(marks)}."

    def rows(self) -> list[tuple[str, str, str, str]]:
        """For each check: its mark and name, the case shown, what was expected, what came.

        Nothing where no check had a run to look at.
        """
        if not any(o.looked for f in self.report.findings for o in f.outcomes.values()):
            return []
        return [self._row(check.name, check.points) for check in self.report.exercise.checks]

    def _row(self, name: str, points: int) -> tuple[str, str, str, str]:
        failed = [f for f in self.report.findings if not f.outcomes[name].passed]
        title = f"{name} ({points} point{'s' * (points > 1)})"
        if not failed:
            return f"✓ {title}", "all", "", ""
        shown = [f for f in failed if f.outcomes[name].looked] or failed
        finding = next((f for f in shown if not f.case.hidden), shown[0])
        outcome, case = finding.outcomes[name], _title(finding.case)
        if not outcome.looked:
            return f"· {title}", case, "", "not looked at"
        if finding.case.hidden:
            return f"✗ {title}", case, "", "not right"
        return f"✗ {title}", case, outcome.expected, outcome.got

    def text(self) -> str:
        """All of it as plain text."""
        rows = self.rows()
        lines = [self.headline, self.tried, *([""] if rows else [])]
        for mark, case, expected, got in rows:
            lines.append(f"  {mark:<24} {'' if case == 'all' else case}".rstrip())
            if expected:
                lines += [f"      expected  {expected}", f"      got       {got}"]
        failure = self.failure
        if failure is not None and not failure.not_written:
            lines += ["", *failure_lines(failure)]
        return "\n".join([*lines, "", self.advice])

    @property
    def failure(self) -> Failure | None:
        """What ended the run, if one did and may be shown."""
        worst = self.report.worst
        return None if worst is None or worst.case.hidden else worst.failure

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        rows = self.rows()
        table = Table(("check", "tried with", "expected", "got"), rows).without_empty_columns()
        failure = self.failure
        told = ""
        if failure is not None and not failure.not_written:
            told = f"<pre>{escape(chr(10).join(failure_lines(failure)))}</pre>"
        return (
            f"<p><b>{escape(self.headline)}</b><br>{escape(self.tried)}</p>"
            f"{table._repr_html_() if rows else ''}{told}"
            f"<p>{escape(self.advice)}</p>"
        )


def failure_lines(failure: Failure) -> list[str]:
    """The report of a failed run, cut to what a person reads."""
    lines = CELL.sub("your cell", failure.message).splitlines() or [failure.kind]
    return lines if len(lines) <= LONGEST else [*lines[:LONGEST], "..."]


def advice(report: Report, hints_read: int) -> str:
    """What to do next: the mistake by name, or what else there is."""
    exercise, worst = report.exercise, report.worst
    if report.passed:
        return f"All checks passed. The solution says why: {where_solution(exercise)}"
    if worst is not None and worst.failure is not None and worst.failure.not_written:
        return (
            f"Nothing is written yet: replace the line that raises NotImplementedError. "
            f"hint({exercise.name!r}) says how to begin."
        )
    if report.mistake is not None:
        return f"What happened: {report.mistake.hint}"
    if worst is not None and worst.failure is not None:
        return f"{_said_of(worst.failure)} {_more(exercise, hints_read)}"
    return (
        "This is none of the mistakes known here. Look at where it differs first. "
        f"{_more(exercise, hints_read)}"
    )


def _more(exercise: Exercise, hints_read: int) -> str:
    return f"hint({exercise.name!r}) has {'another' if hints_read else 'a'} hint."


def _said_of(failure: Failure) -> str:
    """What to do about a run that failed, by the way in which it failed."""
    if failure.hung:
        return "Answers end within a second here; this one was stopped. Which loop never ends?"
    return FAILURES.get(failure.kind, "The answer ended with this error; its last line says where.")


def where_solution(exercise: Exercise) -> str:
    """In which file the solution stands."""
    return f"solutions/, the notebook of lesson {exercise.lesson}."


def picture(report: Report, tried: list[tuple[Case, Observation]]) -> Picture | None:
    """A picture of the learner's own run: a deadlock, or what was sent in the case shown."""
    worst = report.worst
    shown = [seen for case, seen in tried if worst is None or case is worst.case]
    if not shown or (worst is not None and worst.case.hidden):
        return None
    seen = max(shown, key=lambda one: one.timeline.world_size)
    try:
        if seen.failure is not None and seen.failure.waits:
            return draw_deadlock(_error(seen.failure))
        return None if report.exercise.draw is None else report.exercise.draw(seen)
    except ValueError:
        return None  # a run that no picture can show, of too many ranks for one


def _error(failure: Failure) -> Deadlock | PeerLeft:
    """The error of a world, from its description."""
    waits = tuple(Wait(*wait) for wait in failure.waits)
    if failure.kind == "PeerLeft":
        left = PeerLeft(failure.message)
        left.waits = waits
        return left
    error = Deadlock(failure.message)
    error.cycle, error.waits = failure.cycle, waits
    return error


def _title(case: Case) -> str:
    return "a hidden case" if case.hidden else case.title
