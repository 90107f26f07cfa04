"""Ways in which a mistake shows: in the numbers, in how a run failed, in the traffic."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ringlab.grade.case import Case
from ringlab.grade.exercise import Shows
from ringlab.grade.looks import collective_names
from ringlab.grade.numbers import alike, close
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


def collects(case: Case, seen: Observation) -> bool | None:
    """Something came by a collective, in a run that ended; one rank cannot tell."""
    if case.world_size == 1:
        return None
    names = (collective_names(seen.timeline, rank) for rank in range(case.world_size))
    return seen.failure is None and any(names)


def turns_back(case: Case, seen: Observation) -> bool | None:
    """Every rank sends to the one before, in a run that ended; two ranks cannot tell."""
    size = case.world_size
    if size < 3:
        return None
    back = {(rank, (rank - 1) % size) for rank in range(size)}
    return seen.failure is None and set(seen.timeline.edges()) == back


def changes_arguments(_case: Case, seen: Observation) -> bool | None:
    """The answer writes into its arguments."""
    return True if seen.changed else None


def right_but(right: Results, way: Shows) -> Shows:
    """Like `way`, for an answer with right numbers; where they are not, nothing can be told."""

    def correct(case: Case, seen: Observation) -> bool | None:
        return (seen.failure is None and close(seen.results, right(case))) or None

    return all_of(correct, way)


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
