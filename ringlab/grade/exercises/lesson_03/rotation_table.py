"""Which rank's block is in hand, step by step: the warm-up of the ring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Shows
from ringlab.grade.looks import results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives

Entry = Callable[[int, int, int], int]


def _table(size: int, entry: Entry, steps: int | None = None) -> list[Plain]:
    rows = range(size if steps is None else steps)
    return [[entry(rank, step, size) for rank in range(size)] for step in rows]


def _owner(rank: int, step: int, size: int) -> int:
    return (rank - step) % size


def _observe(answer: Any, case: Case) -> Observation:
    return alone(answer, case.integer("size"))


def _right(case: Case) -> tuple[Plain, ...]:
    return (_table(case.integer("size"), _owner),)


def _entry_is(entry: Entry) -> Shows:
    """Shows if the table has W rows with these entries."""
    return gives(lambda case: (_table(case.integer("size"), entry),), _right)


def _rows_are(steps: Callable[[int], int], first: int = 0) -> Shows:
    """Shows if the table is right but for the number of its rows."""

    def wrong(case: Case) -> tuple[Plain, ...]:
        size = case.integer("size")
        return (_table(size, lambda r, t, w: _owner(r, t + first, w), steps(size)),)

    return gives(wrong, _right)


def _case(size: int) -> Case:
    return Case(f"{size} rank{'s' * (size > 1)}", options={"size": size})


EXERCISE = Exercise(
    name="rotation_table",
    lesson="03",
    title="The rotation table",
    minutes=10,
    difficulty=1,
    objective="say which rank's block each rank has in hand in each step of a ring",
    signature="rotation_table(size)",
    hints=(
        "In every hop a rank passes its block to the next rank. Where does the block that rank 2 "
        "has in hand in step 1 come from?",
        "Draw the table for 3 ranks by hand. From one row to the next everything moves one place "
        "to the right, and the last entry comes round to the front. A remainder, %, says that "
        "without a loop.",
    ),
    checks=(Check("table", 2, results(_right)),),
    cases=tuple(_case(size) for size in (1, 2, 3, 4)),
    observe=_observe,
    mistakes=(
        Mistake(
            "wrong_direction",
            "Your blocks go the other way round: they move to the rank before. A rank sends to the "
            "next rank, so what it gets comes from the rank before it.",
            _entry_is(lambda r, t, w: (r + t) % w),
        ),
        Mistake(
            "rows_and_columns_swapped",
            "The numbers are right, but rows and columns have changed places. A row is a step and "
            "a column a rank: table[step][rank].",
            _entry_is(lambda r, t, w: _owner(t, r, w)),
        ),
        Mistake(
            "starts_one_hop_late",
            "Your first row is the situation after the first hop. In step 0 nothing has moved yet: "
            "every rank computes with its own block.",
            _entry_is(lambda r, t, w: _owner(r, t + 1, w)),
        ),
        Mistake(
            "nothing_moves",
            "In your table every rank keeps its own block in every step. Nobody would ever see "
            "another rank's keys.",
            _entry_is(lambda r, t, w: r),
        ),
        Mistake(
            "runs_off_the_end",
            "Some entries are no ranks: they are negative, where the block has come round from the "
            "last rank. The circle closes with a remainder, % size.",
            _entry_is(lambda r, t, w: r - t),
        ),
        Mistake(
            "one_step_too_many",
            "Your last row repeats the first. After W steps every rank has seen every block; a "
            "further hop would only bring each rank its own block, which it still has.",
            _rows_are(lambda size: size + 1),
        ),
        Mistake(
            "last_step_missing",
            "The last step is missing: W - 1 hops make W steps, since step 0 needs no hop.",
            _rows_are(lambda size: size - 1),
        ),
        Mistake(
            "first_step_missing",
            "The table begins after the first hop, and one row is missing: step 0, in which every "
            "rank has its own block, counts too.",
            _rows_are(lambda size: size - 1, first=1),
        ),
    ),
)
