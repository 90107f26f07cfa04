"""Answers that give something for every rank at once: compared and named rank by rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ringlab.grade.case import Case
from ringlab.grade.exercise import Look, Outcome
from ringlab.grade.looks import results
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain


def rows(right: Callable[[Case], tuple[Plain, ...]]) -> Look:
    """The one result is a list with the right entry for each rank.

    Parameters
    ----------
    right : callable
        ``right(case)``: the result, as a tuple of one list.
    """

    def look(case: Case, seen: Observation) -> Outcome:
        (wanted,) = right(case)
        got = seen.results[0] if len(seen.results) == 1 else None
        if not isinstance(got, (list, tuple)) or not isinstance(wanted, list):
            return Outcome(False, "a list with an entry for each rank", f"a {type(got).__name__}")
        return results(lambda _: tuple(wanted))(case, replace(seen, results=tuple(got)))

    return look
