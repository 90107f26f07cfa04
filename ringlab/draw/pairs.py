"""The pairs of a causal mask as shapes on the L × L square, rank by rank and source by source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ringlab.layout import Layout
from ringlab.layout.tiles import Tile, tiles

Corner = tuple[float, float]

# More shapes than this cannot be told apart, and take seconds to draw.
_MOST_SHAPES = 20_000


class Region(NamedTuple):
    """The pairs that a rank computes on one source's keys, as polygons.

    Attributes
    ----------
    rank, source, step : int
        In a ring the keys of `source` are at `rank` in step ``(rank - source) % W``.
    kind : {"full", "diagonal"}
        Whether every pair of the shapes' rectangles is computed, or what is on and below the
        diagonal.
    shapes : tuple of tuple of (float, float)
        Corners ``(key, query)`` of polygons that cover each computed pair, a unit square, once.
    """

    rank: int
    source: int
    step: int
    kind: Literal["full", "diagonal"]
    shapes: tuple[tuple[Corner, ...], ...]

    @property
    def area(self) -> float:
        """Pairs that the shapes cover."""
        return sum(_area(shape) for shape in self.shapes)


def regions(layout: Layout, world_size: int, length: int, *, causal: bool) -> list[Region]:
    """List what every rank computes, from the tiles of the layout.

    Raises
    ------
    ValueError
        If the layout cuts the sequence into more pieces than can be drawn.
    """
    found, count = [], 0
    for rank in range(world_size):
        for source in range(world_size):
            parts: dict[Literal["full", "diagonal"], list[tuple[Corner, ...]]] = {}
            where = (layout, rank, source, world_size, length)
            for tile in tiles(*where, causal=causal):
                for kind, shape in _shapes(layout, rank, source, world_size, length, tile, causal):
                    parts.setdefault(kind, []).append(shape)
                    count += 1
                    if count > _MOST_SHAPES:
                        raise ValueError(
                            f"{layout} cuts {length} tokens on {world_size} ranks into more than "
                            f"{_MOST_SHAPES} shapes; draw a shorter sequence, it looks the same."
                        )
            step = (rank - source) % world_size
            found += [Region(rank, source, step, kind, tuple(p)) for kind, p in parts.items()]
    return found


def stretches(positions: list[int]) -> list[range]:
    """Join ascending positions that follow on one another."""
    found: list[range] = []
    for position in positions:
        if found and found[-1].stop == position:
            found[-1] = range(found[-1].start, position + 1)
        else:
            found.append(range(position, position + 1))
    return found


def _shapes(
    layout: Layout, rank: int, source: int, world_size: int, length: int, tile: Tile, causal: bool
) -> Iterator[tuple[Literal["full", "diagonal"], tuple[Corner, ...]]]:
    queries = layout.positions(rank, world_size, length)[tile.q.start : tile.q.stop].tolist()
    keys = layout.positions(source, world_size, length)[tile.k.start : tile.k.stop].tolist()
    for q in stretches(queries):
        for k in stretches(keys):
            if not causal or k[-1] <= q.start:
                yield "full", _rectangle(q, k)
            elif k.start <= q[-1]:
                yield "diagonal", _staircase(q, k)


def _rectangle(q: range, k: range) -> tuple[Corner, ...]:
    return ((k.start, q.start), (k.stop, q.start), (k.stop, q.stop), (k.start, q.stop))


def _staircase(q: range, k: range) -> tuple[Corner, ...]:
    """All pairs of two stretches whose key is not after the query."""
    first = max(q.start, k.start)
    corners: list[Corner] = [(k.start, first)]
    for query in range(first, q.stop):
        edge = min(query + 1, k.stop)
        corners += [(edge, query), (edge, query + 1)]
    return (*corners, (k.start, q.stop))


def _area(corners: tuple[Corner, ...]) -> float:
    following = (*corners[1:], corners[0])
    twice = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(corners, following, strict=True))
    return abs(twice) / 2
