"""How many of a source's keys each query row may see: a staircase, climbed run by run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ringlab.layout.runs import Run


class Stair(NamedTuple):
    """Query rows that see the first ``keys`` keys, or ``rise`` more with every row.

    Both queries and keys lie in ascending order of position, so what a row may see is
    always a prefix of the keys, never shorter than the row's before it.
    """

    start: int
    stop: int
    keys: int  # seen by row `start`
    rise: int  # 0 or 1

    @property
    def rows(self) -> int:
        """How many query rows stand on the stair."""
        return self.stop - self.start

    @property
    def top(self) -> int:
        """How many keys its last row sees."""
        return self.keys + self.rise * (self.rows - 1)

    @property
    def pairs(self) -> int:
        """How many (query, key) pairs it allows."""
        return self.rows * (self.keys + self.top) // 2


def stairs(queries: Sequence[Run], keys: Sequence[Run]) -> Iterator[Stair]:
    """Climb the staircase; rows that see no key are left out.

    Takes a step for each run, and where runs of different steps overlap one for each
    token of the sparser.

    Parameters
    ----------
    queries, keys : sequence of Run
        Ascending. A query sees the keys whose position is at most its own.
    """
    row = below = index = 0
    for run in queries:
        position, left = run.start, run.count
        while left:
            while index < len(keys) and keys[index].last <= position:
                below += keys[index].count
                index += 1
            if index == len(keys):
                rows, inside, rise = left, 0, 0
            else:
                rows, inside, rise = _climb(position, run.step, left, keys[index])
            if below + inside:
                yield Stair(row, row + rows, below + inside, rise)
            row += rows
            position += rows * run.step
            left -= rows


def _climb(position: int, step: int, left: int, keys: Run) -> tuple[int, int, int]:
    """From a row below the last key of a run: how far one stair goes, and its keys and rise."""
    if position < keys.start:
        return min(left, _ceil_div(keys.start - position, step)), 0, 0
    inside = (position - keys.start) // keys.step + 1
    if step == keys.step:
        return min(left, _ceil_div(keys.last - position, step)), inside, 1
    next_key = keys.start + inside * keys.step
    return min(left, _ceil_div(next_key - position, step)), inside, 0


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def merged(staircase: Iterable[Stair]) -> Iterator[Stair]:
    """Join neighbours that are one level or one slope."""
    current: Stair | None = None
    for stair in staircase:
        both = _join(current, stair) if current is not None else stair
        if both is None and current is not None:
            yield current
        current = both or stair
    if current is not None:
        yield current


def _join(first: Stair, second: Stair) -> Stair | None:
    """Both as one stair, if it exists; a stair of one row fits any rise."""
    rise = second.keys - first.top
    if rise not in (0, 1):
        return None
    if (first.rows > 1 and first.rise != rise) or (second.rows > 1 and second.rise != rise):
        return None
    return Stair(first.start, second.stop, first.keys, rise)
