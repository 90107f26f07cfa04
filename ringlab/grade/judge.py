"""Judging observations: the outcome of every check, the mistake behind them, the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ringlab.grade.case import Case
from ringlab.grade.exercise import Exercise, Mistake, Outcome
from ringlab.grade.observation import Failure, Observation


@dataclass(frozen=True)
class Finding:
    """What the checks found in one case.

    Attributes
    ----------
    case : Case
    outcomes : dict of str to Outcome
        By the name of the check, in the order of the checks; of a failed run all are not passed.
    failure : Failure or None
    """

    case: Case
    outcomes: dict[str, Outcome]
    failure: Failure | None

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(outcome.passed for outcome in self.outcomes.values())


@dataclass(frozen=True)
class Report:
    """The judgement of one answer.

    Attributes
    ----------
    exercise : Exercise
    findings : tuple of Finding
        One a case.
    mistake : Mistake or None
        The mistake that explains what came; None if nothing is wrong, or nothing known.
    worst : Finding or None
        The finding to show: one that did not pass, not hidden and with that mistake if possible;
        of several one whose run failed, which tells more than wrong numbers.
    """

    exercise: Exercise
    findings: tuple[Finding, ...]
    mistake: Mistake | None
    worst: Finding | None

    @property
    def earned(self) -> dict[str, int]:
        """Points by check: all of a check's points if it passed in every case, else 0."""
        return {
            check.name: check.points
            if self.findings and all(f.outcomes[check.name].passed for f in self.findings)
            else 0
            for check in self.exercise.checks
        }

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(self.earned.values())

    @property
    def passed(self) -> bool:
        """Whether every check passed in every case."""
        return bool(self.findings) and all(finding.passed for finding in self.findings)


def judge(exercise: Exercise, case: Case, observation: Observation) -> Finding:
    """Compare an observation with what is right; the answer does not run here.

    Parameters
    ----------
    exercise : Exercise
    case : Case
    observation : Observation
        Of this case.

    Returns
    -------
    Finding
    """
    failure, outcomes = observation.failure, dict[str, Outcome]()
    for check in exercise.checks:
        before = outcomes.get(check.after)
        if failure is not None:
            outcomes[check.name] = Outcome(
                False, "a run that ends", _first_line(failure), looked=False
            )
        elif before is not None and not before.passed:
            outcomes[check.name] = Outcome(False, before.expected, before.got, looked=False)
        else:
            outcomes[check.name] = check.look(case, observation)
    return Finding(case, outcomes, failure)


def diagnose(
    exercise: Exercise, tried: Sequence[tuple[Case, Observation]], findings: Sequence[Finding]
) -> Mistake | None:
    """Name the mistake that explains what came.

    A mistake explains an answer if it shows in at least one case that did not pass, and none of
    those speaks against it. Of several the exercise's first is taken.
    """
    failed = [pair for pair, finding in zip(tried, findings, strict=True) if not finding.passed]
    if all(seen.failure is not None and seen.failure.not_written for _, seen in failed):
        return None  # of a stub no mistake is asked, each of which takes a moment
    for mistake in exercise.mistakes:
        verdicts = [mistake.shows(case, observation) for case, observation in failed]
        if True in verdicts and False not in verdicts:
            return mistake
    return None


def report(exercise: Exercise, tried: Sequence[tuple[Case, Observation]]) -> Report:
    """Judge all cases of one answer.

    Parameters
    ----------
    exercise : Exercise
    tried : sequence of (Case, Observation)

    Returns
    -------
    Report
    """
    findings = tuple(judge(exercise, case, seen) for case, seen in tried)
    mistake = diagnose(exercise, tried, findings)
    return Report(exercise, findings, mistake, _worst(tried, findings, mistake))


def _worst(
    tried: Sequence[tuple[Case, Observation]],
    findings: Sequence[Finding],
    mistake: Mistake | None,
) -> Finding | None:
    def rank(pair: tuple[Finding, Observation]) -> tuple[bool, bool, bool]:
        finding, seen = pair
        tells = mistake is None or mistake.shows(finding.case, seen) is True
        return finding.case.hidden, not tells, finding.failure is None

    pairs = [(f, seen) for f, (_, seen) in zip(findings, tried, strict=True) if not f.passed]
    return min(pairs, key=rank)[0] if pairs else None


def _first_line(failure: Failure) -> str:
    return failure.message.splitlines()[0] if failure.message else failure.kind
