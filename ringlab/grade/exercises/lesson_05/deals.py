"""How positions are dealt out to ranks in these exercises: written out, without the library."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

from ringlab.grade.case import Case

Positions = list[list[int]]
"""The positions of each rank's tokens."""


def case_of(size: int, length: int) -> Case:
    """A case of nothing but a number of ranks and a length."""
    title = f"{size} rank{'s' * (size > 1)}, {length} tokens"
    return Case(title, options={"size": size, "length": length})


def parts(length: int, count: int) -> Positions:
    """Consecutive pieces whose lengths differ by one at most, the longer ones first."""
    short, longer = divmod(length, count)
    ends = [piece * short + min(piece, longer) for piece in range(count + 1)]
    return [list(range(first, end)) for first, end in pairwise(ends)]


def contiguous(size: int, length: int) -> Positions:
    """Neighbouring tokens on each rank."""
    return parts(length, size)


def zigzag(size: int, length: int) -> Positions:
    """Piece r of 2 W and its mirror image on rank r."""
    pieces = parts(length, 2 * size)
    return [pieces[rank] + pieces[2 * size - 1 - rank] for rank in range(size)]


def striped(size: int, length: int) -> Positions:
    """Each W-th token."""
    return [list(range(rank, length, size)) for rank in range(size)]


def shuffled(size: int, length: int) -> Positions:
    """Any tokens on any rank, in ascending order, some ranks with more than others."""
    draw = random.Random(length)
    owner = [draw.randrange(size) for _ in range(length)]
    return [[token for token in range(length) if owner[token] == rank] for rank in range(size)]


DEALS: dict[str, Callable[[int, int], Positions]] = {
    "contiguous": contiguous,
    "zigzag": zigzag,
    "striped": striped,
    "shuffled": shuffled,
}
"""By name, as the cases have them."""
