"""Where a token of a growing cache lives: its rank, and its row there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome, Shows
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives

Place = Callable[[int, int, int], tuple[int, int]]
"""From token, block and number of ranks to rank and row."""


def _sizes(case: Case) -> tuple[int, int, int]:
    return case.integer("tokens"), case.integer("block"), case.integer("size")


def _observe(answer: Any, case: Case) -> Observation:
    """Ask for the place of every token, in order."""

    def every(tokens: int, block: int, size: int) -> list[Any]:
        return [answer(token, block, size) for token in range(tokens)]

    return alone(every, *_sizes(case))


def _places(place: Place, case: Case) -> list[tuple[int, int]]:
    tokens, block, size = _sizes(case)
    return [place(token, block, size) for token in range(tokens)]


def _owner(token: int, block: int, size: int) -> int:
    return token // block % size


def _row(token: int, block: int, size: int) -> int:
    return token // (block * size) * block + token % block


def _place(token: int, block: int, size: int) -> tuple[int, int]:
    return _owner(token, block, size), _row(token, block, size)


def _right(case: Case) -> tuple[Plain, ...]:
    return (list[Plain](_places(_place, case)),)


def _is(place: Place) -> Shows:
    return gives(lambda case: (list[Plain](_places(place, case)),), _right)


def _row_is(row: Callable[[int, int, int], int]) -> Shows:
    """Shows if the owners are right and the rows are these."""
    return _is(lambda token, block, size: (_owner(token, block, size), row(token, block, size)))


def _owner_is(owner: Callable[[int, int, int], int]) -> Shows:
    """Shows if the owners are these, whatever the rows."""

    def shows(case: Case, seen: Observation) -> bool | None:
        tokens, block, size = _sizes(case)
        wrong = [owner(token, block, size) for token in range(tokens)]
        if wrong == [rank for rank, _ in _places(_place, case)]:
            return None
        return _owners_of(seen) == wrong

    return shows


def _owners_of(seen: Observation) -> list[Any]:
    pairs = seen.results[0] if seen.results else None
    if not isinstance(pairs, list):
        return []
    return [pair[0] if isinstance(pair, (list, tuple)) and pair else None for pair in pairs]


def _owners(case: Case, seen: Observation) -> Outcome:
    wanted = [rank for rank, _ in _places(_place, case)]
    owners = _owners_of(seen)
    if len(owners) != len(wanted):
        return Outcome(False, f"{len(wanted)} places", f"{len(owners)} places")
    for token, (got, right) in enumerate(zip(owners, wanted, strict=True)):
        if type(got) is not int or got != right:
            return Outcome(False, f"token {token} on rank {right}", f"token {token}: {got!r}")
    return Outcome(True, "the owner of every token", "the owner of every token")


def _rows(case: Case, seen: Observation) -> Outcome:
    """Every place is right: a pair of integers."""
    places: Any = seen.results[0]
    for token, (got, wanted) in enumerate(zip(places, _places(_place, case), strict=True)):
        if len(got) != 2 or type(got[1]) is not int or got[1] != wanted[1]:
            return Outcome(False, f"token {token} in row {wanted[1]}", f"token {token}: {got!r}")
    return Outcome(True, "the row of every token", "the row of every token")


def _case(size: int, block: int, tokens: int) -> Case:
    title = f"{size} rank{'s' * (size > 1)}, runs of {block}, {tokens} tokens"
    return Case(title, options={"tokens": tokens, "block": block, "size": size})


EXERCISE = Exercise(
    name="cache_owner",
    lesson="06",
    title="Where a token lives",
    minutes=10,
    difficulty=2,
    objective="say on which rank and in which row any token of a growing cache is kept",
    signature="cache_owner(token, block, size)",
    hints=(
        "Write down for 3 ranks and runs of 2 which tokens rank 1 keeps, and count its rows. In "
        "which run is a token, and how many runs did its rank keep before that one?",
        "The number of the run is token // block, and runs go round the ranks. A rank has kept "
        "one whole run for each round that is over; then comes the place inside the run.",
    ),
    checks=(
        Check("owner", 2, _owners),
        Check("row", 2, _rows, after="owner"),
    ),
    cases=(
        _case(1, 4, 9),
        _case(3, 1, 10),
        _case(3, 2, 19),
        _case(4, 3, 31),
        _case(2, 5, 28),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "rank_and_row_swapped",
            "Both numbers are right, but they have changed places: the rank comes first.",
            _is(lambda t, b, w: (_row(t, b, w), _owner(t, b, w))),
        ),
        Mistake(
            "row_is_the_token",
            "Your row is the token's number in the whole sequence. A rank keeps its tokens without "
            "gaps: the row counts only what is on this rank.",
            _row_is(lambda t, b, w: t),
        ),
        Mistake(
            "place_in_the_run",
            "Your row is the place inside the run, so each run would be written over the one "
            "before. Add the rows of the runs that the rank keeps already.",
            _row_is(lambda t, b, w: t % b),
        ),
        Mistake(
            "number_of_the_run",
            "Your row counts runs, not tokens: all tokens of a run would go into one row.",
            _row_is(lambda t, b, w: t // (b * w)),
        ),
        Mistake(
            "first_row_of_the_run",
            "Your row is that in which the run begins. The place inside the run is missing.",
            _row_is(lambda t, b, w: t // (b * w) * b),
        ),
        Mistake(
            "dealt_token_by_token",
            "Your rows are those of tokens that are dealt out one at a time, token // size. With "
            "runs, a rank has a whole run before the next rank has anything.",
            _row_is(lambda t, b, w: t // w),
        ),
        Mistake(
            "runs_ignored",
            "You deal out tokens one at a time. They are dealt out in runs: `block` tokens in a "
            "row live on one rank.",
            _owner_is(lambda t, b, w: t % w),
        ),
        Mistake(
            "block_and_size_swapped",
            "Block and number of ranks have changed places: divide by the block to find the run, "
            "and take the remainder by the number of ranks.",
            _owner_is(lambda t, b, w: t // w % b),
        ),
        Mistake(
            "never_comes_round",
            "Some of your owners are no ranks: after the last rank it is rank 0 again. A remainder "
            "closes the circle.",
            _owner_is(lambda t, b, w: t // b),
        ),
        Mistake(
            "one_token_early",
            "Each of your runs ends one token too early, as if tokens were counted from 1. Token 0 "
            "is the first of the first run.",
            _owner_is(lambda t, b, w: (t + 1) // b % w),
        ),
    ),
)
