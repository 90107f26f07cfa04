"""Wall time and CPU time of a call, and what repeated readings of two rivals say."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

WAITING = "waiting"
"""The part of a reading that is wall time in which the rank's own thread did not run. It costs no
CPU time."""


@dataclass(frozen=True)
class Reading:
    """What a call cost.

    Attributes
    ----------
    wall : float
        Seconds on the clock.
    cpu : float
        Seconds of all cores together, user and system, over all threads: what a busy machine
        does not stretch.
    parts : mapping of str to float
        What the CPU time was spent on, and `WAITING`; empty where nobody looked.
    """

    wall: float
    cpu: float
    parts: Mapping[str, float] = field(default_factory=dict)


Phases = Mapping[str, Reading]
"""A reading for each phase of a call, as ``{"forward": ..., "backward": ...}``."""


class Stopwatch:
    """Reads the clocks of this process, its threads included, around a block.

    Examples
    --------
    >>> with Stopwatch() as watch:
    ...     total = sum(range(100_000))
    >>> watch.reading.wall > 0 and watch.reading.cpu > 0
    True
    """

    reading: Reading

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *exception: object) -> None:
        cpu = time.process_time() - self._cpu
        self.reading = Reading(time.perf_counter() - self._wall, cpu)


def over_ranks(ranks: Iterable[Phases]) -> Phases:
    """Put together what each rank read: the longest wall time, the CPU time of all.

    Of waiting it is the mean.
    """
    found = list(ranks)
    return {phase: _together([reading[phase] for reading in found]) for phase in found[0]}


def _together(ranks: Sequence[Reading]) -> Reading:
    parts = {part: sum(rank.parts[part] for rank in ranks) for part in ranks[0].parts}
    if WAITING in parts:
        parts[WAITING] /= len(ranks)
    return Reading(max(rank.wall for rank in ranks), sum(rank.cpu for rank in ranks), parts)


def interleave(
    contestants: Mapping[str, Callable[[], Phases]], rounds: int
) -> dict[str, list[Phases]]:
    """Let contestants take turns, in the opposite order every other round.

    Parameters
    ----------
    contestants : mapping
        For each name a call that runs it once.
    rounds : int
        How often each runs.

    Returns
    -------
    dict
        For each name what was read in each round.
    """
    readings: dict[str, list[Phases]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in list(contestants)[:: -1 if number % 2 else 1]:
            readings[name].append(contestants[name]())
    return readings


@dataclass(frozen=True)
class Comparison:
    """Two contestants on one problem.

    Attributes
    ----------
    ours, baseline : Reading
        Medians over the rounds.
    ratio : float
        CPU time of the baseline over ours, of the medians: 1 is parity, more is faster.
    low, high : float
        The same ratio in the worst and in the best single round.
    wall_ratio : float
        As `ratio`, of wall time.
    """

    ours: Reading
    baseline: Reading
    ratio: float
    low: float
    high: float
    wall_ratio: float


def compare(ours: Sequence[Reading], baseline: Sequence[Reading]) -> Comparison:
    """Compare readings of the same rounds.

    Raises
    ------
    ValueError
        If there are no rounds, or not the same number of them.
    """
    if not ours or len(ours) != len(baseline):
        raise ValueError(
            f"A comparison needs as many readings of both, at least one; got {len(ours)} and "
            f"{len(baseline)}."
        )
    rounds = [theirs.cpu / own.cpu for own, theirs in zip(ours, baseline, strict=True)]
    mine, other = median(ours), median(baseline)
    return Comparison(
        mine, other, other.cpu / mine.cpu, min(rounds), max(rounds), other.wall / mine.wall
    )


def median(readings: Sequence[Reading]) -> Reading:
    """Give the medians of wall time and of CPU time, each by itself."""
    return Reading(
        statistics.median(reading.wall for reading in readings),
        statistics.median(reading.cpu for reading in readings),
    )
