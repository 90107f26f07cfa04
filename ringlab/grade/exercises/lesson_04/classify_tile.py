"""Which tiles of the causal triangle are full, which are cut, and which are empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome, Shows
from ringlab.grade.looks import results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives


class Tile(NamedTuple):
    """Queries and keys of neighbouring positions: where they begin, and how many there are."""

    first_query: int
    queries: int
    first_key: int
    keys: int

    @property
    def last_query(self) -> int:
        """Position of the last query."""
        return self.first_query + self.queries - 1

    @property
    def last_key(self) -> int:
        """Position of the last key."""
        return self.first_key + self.keys - 1

    def __str__(self) -> str:
        return (
            f"queries {_span(self.first_query, self.last_query)}, "
            f"keys {_span(self.first_key, self.last_key)}"
        )


Method = Callable[[Tile], str]


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"


def _tiles(case: Case) -> list[Tile]:
    rows = case.options["tiles"]
    assert isinstance(rows, list)
    return [Tile._make(row) for row in rows if isinstance(row, list)]


def _observe(answer: Any, case: Case) -> Observation:
    return alone(lambda tiles: [answer(*tile) for tile in tiles], case.options["tiles"])


def _results(method: Method) -> Callable[[Case], tuple[Plain, ...]]:
    return lambda case: ([method(tile) for tile in _tiles(case)],)


def _count(tile: Tile) -> str:
    """By its definition: a key is allowed if it is not later than the query."""
    allowed = [
        key <= query
        for query in range(tile.first_query, tile.last_query + 1)
        for key in range(tile.first_key, tile.last_key + 1)
    ]
    return "full" if all(allowed) else "diagonal" if any(allowed) else "empty"


_right = _results(_count)


def _kinds(case: Case, seen: Observation) -> Outcome:
    """Every tile called by its name; says which one is not."""
    outcome = results(_right)(case, seen)
    (wanted,), came = _right(case), seen.results[0]
    if outcome.passed or not isinstance(came, list) or not isinstance(wanted, list):
        return outcome
    for tile, right, found in zip(_tiles(case), wanted, came, strict=True):
        if found != right:
            return Outcome(False, f"{tile}: {right!r}", f"{tile}: {found!r}")
    return outcome


def _by(empty: Callable[[Tile], bool], full: Callable[[Tile], bool]) -> Shows:
    """Shows if the answer calls empty and full what these call so."""
    return gives(
        _results(lambda t: "empty" if empty(t) else "full" if full(t) else "diagonal"), _right
    )


def _case(title: str, *tiles: tuple[int, int, int, int]) -> Case:
    return Case(title, options={"tiles": [list[Plain](tile) for tile in tiles]})


EXERCISE = Exercise(
    name="classify_tile",
    lesson="04",
    title="Full, diagonal, empty",
    minutes=10,
    difficulty=1,
    objective="say of any tile, by four numbers, whether it is full, diagonal or empty",
    signature="classify_tile(first_query, queries, first_key, keys)",
    hints=(
        "Which pair of a tile is the last to be allowed, and which the first? If you know of those "
        "two, you know of all pairs.",
        "The hardest pair is the earliest query with the latest key: if it is allowed, all are. "
        "The easiest is the latest query with the earliest key: if it is not, none is. A position "
        "sees itself, and n positions from p on end at p + n - 1.",
    ),
    checks=(Check("kinds", 3, _kinds),),
    cases=(
        _case(
            "four ranks, 3 tokens each",
            (0, 3, 0, 3),
            (3, 3, 0, 3),
            (0, 3, 3, 3),
            (9, 3, 3, 3),
            (6, 3, 6, 3),
        ),
        _case("one query, chunks of keys", (5, 1, 0, 4), (5, 1, 4, 4), (5, 1, 5, 1), (5, 1, 6, 2)),
        _case(
            "many queries, few keys",
            (0, 8, 0, 2),
            (0, 8, 6, 2),
            (4, 8, 4, 1),
            (4, 8, 10, 2),
            (4, 8, 12, 2),
        ),
        _case("few queries, many keys", (2, 2, 0, 8), (4, 4, 0, 6), (6, 2, 1, 6), (7, 2, 1, 6)),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "a_position_does_not_see_itself",
            "You compare as if a key had to be earlier than the query. A token attends to itself "
            "too: allowed is key <= query.",
            _by(lambda t: t.first_key >= t.last_query, lambda t: t.last_key < t.first_query),
        ),
        Mistake(
            "one_past_the_end",
            "Your chunks are one longer than they are: n positions from p on end at p + n - 1.",
            _by(
                lambda t: t.first_key > t.last_query + 1, lambda t: t.last_key + 1 <= t.first_query
            ),
        ),
        Mistake(
            "chunk_numbers_compared",
            "You compare the numbers of the chunks, which count from 0 on each side. That works "
            "where queries and keys are cut alike. Compare positions.",
            _by(
                lambda t: t.first_key // t.keys > t.first_query // t.queries,
                lambda t: t.first_key // t.keys < t.first_query // t.queries,
            ),
        ),
        Mistake(
            "starts_compared",
            "You compare where the chunks begin, and not where they end. That works where they are "
            "equally long and do not overlap.",
            _by(lambda t: t.first_key > t.first_query, lambda t: t.first_key < t.first_query),
        ),
        Mistake(
            "diagonal_for_the_own_block_only",
            "You call a tile diagonal only if queries and keys begin at one position. The edge of "
            "the triangle also cuts tiles that begin elsewhere, if the chunks differ in length.",
            _by(
                lambda t: t.first_key > t.last_query,
                lambda t: t.first_key != t.first_query,
            ),
        ),
        Mistake(
            "first_key_decides",
            "You call a tile full as soon as its first key is allowed for its first query. The "
            "last key must be allowed for it too.",
            _by(lambda t: t.first_key > t.last_query, lambda t: t.first_key <= t.first_query),
        ),
        Mistake(
            "queries_and_keys_swapped",
            "Full and empty have changed places: you let keys look at queries that are not later. "
            "A query sees the keys that are not later than itself.",
            _by(lambda t: t.last_key < t.first_query, lambda t: t.last_query <= t.first_key),
        ),
    ),
)
