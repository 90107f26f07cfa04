"""One question of one student: the job that runs it, and the grade that its end gives."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from ringlab.grade import plain
from ringlab.grade.bulk.grades import Grade
from ringlab.grade.bulk.slicing import all_but_checks, needed, without_blank
from ringlab.grade.bulk.submission import Submission
from ringlab.grade.case import Case
from ringlab.grade.exercise import Exercise
from ringlab.grade.fouls import KINDS, beside_messages, foul
from ringlab.grade.isolation.job import FINISHED, Ended, Job
from ringlab.grade.isolation.limits import Limits
from ringlab.grade.isolation.program import Source
from ringlab.grade.judge import Report, report
from ringlab.grade.notebook.feedback import failure_lines
from ringlab.grade.notebook.session import stub
from ringlab.grade.observation import Failure, Observation
from ringlab.grade.observe import nothing_happened

TOO_FEW = ("NameError", "AttributeError", "UnboundLocalError")
"""Failures that may come of cells which were left out."""
QUIET = ("NotImplementedError", "Missing", "Ended", "Unreadable", *KINDS)
"""Failures of which all is said with their name."""
TELLABLE = ("BufferHazard", "Deadlock", "HungRank", "MessageMismatch", "NotPlain", "PeerLeft",
            "TooLong", "UnmatchedOperation", "UnwaitedHandle")  # fmt: skip
"""Failures that may be named in a hidden case; a learner's own could carry out what is hidden."""
WORD, SENTENCE = 60, 400
UNREADABLE = "what it returned could not be read"


def job(
    exercise: Exercise, cases: Sequence[Case], submissions: Sequence[Submission], limits: Limits,
    *, everything: bool = False,
) -> Job | None:  # fmt: skip
    """What to run for an answer; None if no notebook mentions it.

    Parameters
    ----------
    exercise : Exercise
    cases : sequence of Case
    submissions : sequence of Submission
        The first notebook that defines the answer is taken.
    limits : Limits
    everything : bool
        Whether to execute all cells, and not only those that the answer seems to need.
    """
    for submission in submissions:
        written = without_blank(submission.cells, exercise.answer, stub(exercise.name))
        cells = needed(written, exercise.answer, exercise.name)
        if cells:
            chosen = all_but_checks(written) if everything else cells
            sources = [Source(cell.title, cell.text) for cell in chosen]
            tried = [plain.dump(case.as_plain()) for case in cases]
            again = _to_alter(cases)
            return Job(exercise.name, sources, tried, tried[again] if again >= 0 else b"", limits)
    return None


def _to_alter(cases: Sequence[Case]) -> int:
    """Which case is tried again with altered messages: of few ranks, hidden if there is one."""
    several = [c for c in cases if c.world_size > 1]
    # Of two ranks one may have nothing to receive, and next and before are the same.
    few = min(several, key=lambda c: (not c.hidden, c.world_size == 2, c.world_size), default=None)
    return -1 if few is None else next(at for at, c in enumerate(cases) if c is few)


def missing(exercise: Exercise) -> Grade:
    """The grade of an answer that is not there."""
    return Grade(
        exercise.name, 0, exercise.points, dict.fromkeys(_names(exercise), 0), "missing",
        f"no notebook defines {exercise.answer!r}",
    )  # fmt: skip


def worth_another_try(cases: Sequence[Case], ended: Ended) -> bool:
    """Whether cells that were left out may be what an answer lacked."""
    kinds = [seen.failure.kind for seen in _readable(cases, ended) if seen.failure]
    return any(kind in TOO_FEW for kind in kinds) or any(
        f": {kind}:" in problem for kind in TOO_FEW for problem in ended.problems
    )


def grade(exercise: Exercise, cases: Sequence[Case], ended: Ended) -> Grade:
    """Judge what an answer did; none of it runs here.

    Parameters
    ----------
    exercise : Exercise
    cases : sequence of Case
        Those of the job.
    ended : Ended

    Returns
    -------
    Grade
    """
    seen = _readable(cases, ended)
    against = foul(seen)
    judged = _judged(exercise, cases, ended, seen, against)
    if against is None:
        against = _beside(judged, seen)
        judged = judged if against is None else _judged(exercise, cases, ended, seen, against)
    state, message = _state(judged, ended, seen[: len(cases)], against)
    return Grade(
        exercise.name,
        judged.points,
        exercise.points,
        judged.earned,
        state,
        message,
        judged.mistake.name if judged.mistake else "",
        _hint(exercise, judged),
        tuple(_shown(judged)),
        ended.problems,
        ended.sealed,
    )


def _judged(
    exercise: Exercise, cases: Sequence[Case], ended: Ended, seen: Sequence[Observation],
    against: Failure | None,
) -> Report:  # fmt: skip
    """Judge what was seen; a foul stands in every case in the place of that."""
    tried = [
        (case, nothing_happened(case.world_size, against or _unseen(ended, at)))
        if against or at >= len(seen) else (case, seen[at])
        for at, case in enumerate(cases)
    ]  # fmt: skip
    return report(exercise, tried)


def _beside(judged: Report, seen: Sequence[Observation]) -> Failure | None:
    """Whether right results came without messages; of wrong ones there is more to say.

    The first check of an exercise looks at the results.
    """
    cases = [finding.case for finding in judged.findings]
    again, first = _to_alter(cases), judged.exercise.checks[0].name
    if again < 0 or len(seen) <= len(cases):
        return None
    if not judged.findings[again].outcomes[first].passed:
        return None
    return beside_messages(seen[again], seen[len(cases)])


def _readable(cases: Sequence[Case], ended: Ended) -> list[Observation]:
    """The observations up to the first that is not one, or is not of its case."""
    again = [cases[at] for at in (_to_alter(cases),) if at >= 0]
    found = []
    for case, data in zip((*cases, *again), ended.observations, strict=False):
        try:
            seen = Observation.from_bytes(data)
        except ValueError:
            break
        results = len(seen.results) if seen.failure is None else case.world_size
        if not seen.timeline.world_size == results == case.world_size:
            break
        found.append(seen)
    return found


def _unseen(ended: Ended, at: int) -> Failure:
    """Why a case has no observation."""
    if at < len(ended.observations):
        return Failure("Unreadable", UNREADABLE)
    return Failure("Ended", ended.message or "its process ended before it was tried")


def _state(
    judged: Report, ended: Ended, seen: Sequence[Observation], against: Failure | None
) -> tuple[str, str]:
    """A word for what became of an answer, and a sentence where there is more to say."""
    if against is not None:
        return against.kind.lower(), against.message
    if ended.how != FINISHED:
        return ended.how, ended.message
    if len(seen) < len(judged.findings):
        return "unreadable", UNREADABLE
    failures = [(f.case, f.failure) for f in judged.findings if f.failure is not None]
    if not failures:
        return ("right" if judged.passed else "partly" if judged.points else "wrong"), ""
    case, first = min(failures, key=lambda pair: pair[0].hidden)
    if first.kind == "Missing":
        return "missing", first.message
    if first.not_written:
        return "not written", "the answer is still as it was handed out"
    if case.hidden:
        known = first.kind in TELLABLE or first.kind in vars(builtins)
        return (first.kind if known else "failed"), "in a case that you cannot see"
    return _cut(first.kind, WORD), _cut(first.message.split("\n")[0], SENTENCE)


def _cut(text: str, most: int) -> str:
    """A learner's text, no longer than a table or page can hold."""
    return text if len(text) <= most else f"{text[:most]}..."


def _hint(exercise: Exercise, judged: Report) -> str:
    if judged.passed:
        return ""
    return judged.mistake.hint if judged.mistake else exercise.hints[0]


def _shown(judged: Report) -> list[str]:
    """What may be told of the finding that tells most; nothing if all such are hidden."""
    worst = judged.worst
    if worst is None:
        return []
    if worst.case.hidden:
        return ["All cases that you can see pass; one that you cannot see does not."]
    lines = [f"tried: {worst.case.title}"]
    if worst.failure is not None:
        lines += [] if worst.failure.kind in QUIET else failure_lines(worst.failure)
    for name, outcome in worst.outcomes.items():
        if not outcome.passed and outcome.looked:
            lines.append(f"{name}: expected {outcome.expected}; got {outcome.got}")
    return [_cut(line, SENTENCE) for line in lines] if len(lines) > 1 else []


def _names(exercise: Exercise) -> list[str]:
    return [check.name for check in exercise.checks]
