"""Ways in which a mistake shows: in the numbers, in how a run failed, in the traffic."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ringlab.grade.case import Case
from ringlab.grade.exercise import Shows
from ringlab.grade.numbers import alike
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain

Results = Callable[[Case], tuple[Plain, ...]]


def gives(wrong: Results, right: Results) -> Shows:
    """Shows in the numbers: what came is what the mistaken method gives.

    Parameters
    ----------
    wrong : callable
        ``wrong(case)``: what the answer would return with this mistake, one entry a rank.
    right : callable
        ``right(case)``. Where the two agree, what is right tells nothing.
    """
    known = lru_cache(maxsize=64)(wrong)

    def shows(case: Case, seen: Observation) -> bool | None:
        mistaken = known(case)
        no_trace = alike(mistaken, right(case))
        if seen.failure is not None:
            return None if no_trace else False
        came = alike(seen.results, mistaken)
        return None if no_trace and came else came

    return shows


def fails(*kinds: str, words: str = "") -> Shows:
    """Shows in how the run failed.

    Parameters
    ----------
    *kinds : str
        Of `Failure.kind`; any will do.
    words : str
        What must also stand in the message.
    """

    def shows(_case: Case, seen: Observation) -> bool | None:
        if seen.failure is None:
            return None
        return seen.failure.kind in kinds and words in seen.failure.message

    return shows


def any_of(*ways: Shows) -> Shows:
    """Shows if one of several ways shows."""

    def shows(case: Case, seen: Observation) -> bool | None:
        verdicts = [way(case, seen) for way in ways]
        return True if True in verdicts else False if False in verdicts else None

    return shows


def all_of(*ways: Shows) -> Shows:
    """Shows if all of several ways show."""

    def shows(case: Case, seen: Observation) -> bool | None:
        verdicts = [way(case, seen) for way in ways]
        return False if False in verdicts else None if None in verdicts else True

    return shows


def where(tells: Callable[[Case, Observation], bool], way: Shows) -> Shows:
    """Like `way`, in the cases that can tell; None in the others."""

    def shows(case: Case, seen: Observation) -> bool | None:
        return way(case, seen) if tells(case, seen) else None

    return shows
