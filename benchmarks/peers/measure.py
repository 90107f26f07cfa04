"""Readings of all libraries on a problem, taken in turns: errors, times, traffic, memory."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers.peer import BOTH, FORWARD
from benchmarks.peers.problem import RESULTS, Problem, answer, error
from benchmarks.peers.rank import Answer, Ask
from benchmarks.peers.ranks import Failed, Ranks
from ringlab.bench.readings import Phases, over_ranks

PHASES = (FORWARD, BOTH)


@dataclass(frozen=True)
class Row:
    """One library on one problem.

    Attributes
    ----------
    library : str
    problem : Problem
    errors : dict of str to float
        Relative to float64, for `RESULTS` as far as they were computed.
    wall_s, cpu_s : dict of str to float
        Medians for each of `PHASES` that ran.
    sent : dict of str to int or None
        Bytes that the rank which sent most sent in each of them.
    peak : int or None
        The most bytes of tensors that a rank made and held, in forward and backward.
    failure : dict of str to str
        For each of `PHASES` that did not run, what happened.
    """

    library: str
    problem: Problem
    errors: dict[str, float]
    wall_s: dict[str, float]
    cpu_s: dict[str, float]
    sent: dict[str, int | None]
    peak: int | None
    failure: dict[str, str]

    def flat(self) -> dict[str, Any]:
        """Write it as plain data."""
        return asdict(self)


@dataclass
class Findings:
    """What is known of a library before its times are taken."""

    errors: dict[str, float]
    sent: dict[str, int | None]
    failure: dict[str, str]
    peak: int | None = None

    @property
    def phase(self) -> str | None:
        """The longest phase that it runs."""
        return next((phase for phase in reversed(PHASES) if phase not in self.failure), None)


def look(ranks: Ranks, problem: Problem, exact: dict[str, Tensor]) -> Findings:
    """Run a library once forward and once with backward, and judge what it computes."""
    findings = Findings({}, {}, {})
    for phase in PHASES:
        try:
            answers = ranks.ask(Ask(problem, backward=phase == BOTH, tensors=True))
        except Failed as failure:
            for later in PHASES[PHASES.index(phase) :]:
                findings.failure[later] = str(failure)
            break
        findings.errors = errors(ranks, problem, answers, exact)
        counts = [one.step.sent[phase] for one in answers if one.step]
        findings.sent[phase] = None if None in counts else max(x for x in counts if x is not None)
    return findings


def errors(
    ranks: Ranks, problem: Problem, answers: Sequence[Answer], exact: dict[str, Tensor]
) -> dict[str, float]:
    """Put the shards of each result together and compare them with float64."""
    layout = ranks.peer.layout(problem)
    steps = [one.step for one in answers if one.step]
    found: dict[str, float] = {}
    for name in RESULTS:
        shards = [step.tensors[name] for step in steps if name in step.tensors]
        if shards:
            whole = layout.unshard(shards) if len(shards) > 1 else shards[0]
            found[name] = error(whole, exact[name])
    return found


def compare(contestants: Sequence[Ranks], problem: Problem, rounds: int) -> list[Row]:
    """Measure every library on a problem.

    Parameters
    ----------
    contestants : sequence of Ranks
    problem : Problem
    rounds : int
        How often each runs, in turns, in the opposite order every other round.

    Returns
    -------
    list of Row
        One for each, also for those that fail.
    """
    exact = answer(problem)
    known = {ranks.peer.name: look(ranks, problem, exact) for ranks in contestants}
    for ranks in contestants:
        findings = known[ranks.peer.name]
        findings.peak = _peak(ranks, problem, findings)
    readings: dict[str, list[Phases]] = {ranks.peer.name: [] for ranks in contestants}
    for number in range(rounds):
        for ranks in list(contestants)[:: -1 if number % 2 else 1]:
            findings = known[ranks.peer.name]
            if findings.phase:
                _read(ranks, problem, findings, readings[ranks.peer.name])
    return [
        _row(ranks.peer.name, problem, known[ranks.peer.name], readings[ranks.peer.name])
        for ranks in contestants
    ]


def _peak(ranks: Ranks, problem: Problem, findings: Findings) -> int | None:
    if not findings.phase or not ranks.peer.counted:
        return None
    try:
        answers = ranks.ask(Ask(problem, backward=findings.phase == BOTH, memory=True))
    except Failed:
        return None  # the meter does not fit every library: then there is no number
    return max((one.peak for one in answers if one.peak is not None), default=None)


def _read(ranks: Ranks, problem: Problem, findings: Findings, readings: list[Phases]) -> None:
    try:
        answers = ranks.ask(Ask(problem, backward=findings.phase == BOTH))
        readings.append(over_ranks(one.step.readings for one in answers if one.step))
    except Failed as failure:
        findings.failure = dict.fromkeys(PHASES, f"in a later round: {failure}")


def _row(name: str, problem: Problem, findings: Findings, readings: list[Phases]) -> Row:
    phases = [phase for phase in PHASES if readings and phase in readings[0]]
    wall = {p: statistics.median(one[p].wall for one in readings) for p in phases}
    cpu = {p: statistics.median(one[p].cpu for one in readings) for p in phases}
    return Row(
        name, problem, findings.errors, wall, cpu, findings.sent, findings.peak, findings.failure
    )


def same_dtype_errors(problem: Problem) -> dict[str, float]:
    """What SDPA in one process errs by in the problem's own dtype: the measure of what is right."""
    exact = answer(problem)
    found = answer(problem, getattr(torch, problem.dtype))
    return {name: error(found[name], exact[name]) for name in RESULTS}
