"""Who computes how much in which step of a ring, for tokens dealt out in any way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Shows
from ringlab.grade.exercises.lesson_05.deals import DEALS, Positions
from ringlab.grade.exercises.lesson_05.tables import rows
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives

Sees = Callable[[int, int], bool]
"""Whether the query at a position sees the key at another."""


def _positions(case: Case) -> Positions:
    return DEALS[case.text("deal", "")](case.integer("size"), case.integer("length"))


def _observe(answer: Any, case: Case) -> Observation:
    return alone(answer, [list[Plain](mine) for mine in _positions(case)])


def _pairs(queries: list[int], keys: list[int], sees: Sees) -> int:
    return sum(sees(query, key) for query in queries for key in keys)


def _causal(query: int, key: int) -> bool:
    return key <= query


def _table(positions: Positions, sees: Sees = _causal, sign: int = -1) -> list[list[int]]:
    """A row for each rank, a column for each step; ``sign`` is the ring's direction."""
    size = len(positions)
    return [
        [_pairs(positions[r], positions[(r + sign * t) % size], sees) for t in range(size)]
        for r in range(size)
    ]


def _plain(table: list[list[int]]) -> tuple[Plain, ...]:
    return ([list[Plain](row) for row in table],)


def _right(case: Case) -> tuple[Plain, ...]:
    return _plain(_table(_positions(case)))


def _is(wrong: Callable[[Positions], list[list[int]]]) -> Shows:
    return gives(lambda case: _plain(wrong(_positions(case))), _right)


def _turned(positions: Positions) -> list[list[int]]:
    return [list(column) for column in zip(*_table(positions), strict=True)]


def _by_owner(positions: Positions) -> list[list[int]]:
    return [[_pairs(mine, keys, _causal) for keys in positions] for mine in positions]


def _by_rows(positions: Positions) -> list[list[int]]:
    """The mask compares rows of shards instead of positions."""
    return _table([list(range(len(mine))) for mine in positions])


def _by_ranks(positions: Positions) -> list[list[int]]:
    """Everything of earlier ranks, nothing of later ones, as if tokens were contiguous."""
    size = len(positions)
    table = _table(positions)
    for rank, mine in enumerate(positions):
        for step in range(1, size):
            owner = (rank - step) % size
            table[rank][step] = len(mine) * len(positions[owner]) * (owner < rank)
    return table


def _case(title: str, deal: str, size: int, length: int) -> Case:
    return Case(title, options={"deal": deal, "size": size, "length": length})


EXERCISE = Exercise(
    name="balance_counts",
    lesson="05",
    title="Work by rank and step",
    minutes=10,
    difficulty=2,
    objective="count what every rank computes in every step, however tokens are dealt out",
    signature="balance_counts(positions)",
    hints=(
        "Whose keys does rank r have in hand in step t? And of two tokens, what decides whether "
        "one sees the other?",
        "In step t rank r has the keys of rank (r - t) % W. Go through all pairs of one of r's "
        "positions and one of theirs, and count those in which the key is not later.",
    ),
    checks=(Check("pairs", 4, rows(_right)),),
    cases=(
        _case("1 rank, 5 tokens", "contiguous", 1, 5),
        _case("3 ranks, 13 tokens, contiguous", "contiguous", 3, 13),
        _case("4 ranks, 16 tokens, zig-zag", "zigzag", 4, 16),
        _case("3 ranks, 14 tokens, striped", "striped", 3, 14),
        _case("4 ranks, 19 tokens in any order", "shuffled", 4, 19),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "no_causal_mask",
            "You counted all pairs. A query sees keys that are not later than itself, and no "
            "others.",
            _is(lambda positions: _table(positions, lambda query, key: True)),
        ),
        Mistake(
            "diagonal_left_out",
            "A token sees itself too. That is a pair for each token, all of them in step 0.",
            _is(lambda positions: _table(positions, lambda query, key: key < query)),
        ),
        Mistake(
            "sees_the_future",
            "Your mask is turned round: you counted the keys that are later than the query.",
            _is(lambda positions: _table(positions, lambda query, key: key >= query)),
        ),
        Mistake(
            "wrong_direction",
            "The numbers are right, but not those of their steps: blocks go to the next rank, so "
            "what rank r has in hand in step t began t ranks before it.",
            _is(lambda positions: _table(positions, sign=1)),
        ),
        Mistake(
            "columns_by_owner",
            "Your columns are the ranks whose keys they are. A column is a step: in step 0 every "
            "rank has its own keys.",
            _is(_by_owner),
        ),
        Mistake(
            "rows_and_columns_swapped",
            "Rows and columns have changed places: a row is a rank, and a column a step.",
            _is(_turned),
        ),
        Mistake(
            "rows_for_positions",
            "You compared rows of the shards. Row 0 of one rank may stand far behind row 5 of "
            "another: compare positions.",
            _is(_by_rows),
        ),
        Mistake(
            "by_rank_alone",
            "You took all keys of earlier ranks and none of later ones. That holds for contiguous "
            "tokens; dealt out otherwise, a later rank has early tokens too.",
            _is(_by_ranks),
        ),
    ),
)
