"""Attention's work as a list of tiles: what a rank's queries may see of a rank's keys."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from ringlab.layout.layout import Layout, checked_runs, row_offsets
from ringlab.layout.runs import Run, check_place, run_positions
from ringlab.layout.stairs import Stair, merged, stairs

# Pairs under a mask that cost less than a kernel call to leave them out.
SMALL_MASK = 128 * 128


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of local query rows and local key rows, computed in one kernel call.

    Parameters
    ----------
    q, k : range
        Rows of the rank's queries and of the source's keys, ``start`` and ``stop``.
    kind : {"full", "diagonal", "mask"}
        ``"full"``: every row sees every key. ``"diagonal"``: the tile is square and row
        i sees its keys 0 to i (top-left causal). ``"mask"``: `tile_mask` says.
    mask_pairs : int
        How many pairs the mask of a ``"mask"`` tile allows.
    """

    q: range
    k: range
    kind: Literal["full", "diagonal", "mask"]
    mask_pairs: int = 0

    def __post_init__(self) -> None:
        if self.kind == "diagonal" and len(self.q) != len(self.k):
            raise ValueError(
                f"a diagonal tile is square; got {len(self.q)} rows and {len(self.k)} keys."
            )

    @property
    def pairs(self) -> int:
        """How many (query, key) pairs the tile allows."""
        if self.kind == "mask":
            return self.mask_pairs
        rows = len(self.q)
        return rows * (rows + 1) // 2 if self.kind == "diagonal" else rows * len(self.k)


def tiles(
    layout: Layout, rank: int, source: int, world_size: int, length: int, *, causal: bool
) -> tuple[Tile, ...]:
    """List the work of a rank's queries on a source's keys; cached.

    Parameters
    ----------
    layout : Layout
        Who owns which token.
    rank, source : int
        The rank of the queries and the rank of the keys.
    world_size, length : int
        Ranks, and tokens in the whole sequence.
    causal : bool
        Whether a query sees only keys whose global position is at most its own.

    Returns
    -------
    tuple of Tile
        Together they cover every allowed pair exactly once and, outside the masks of
        ``"mask"`` tiles, nothing else. Empty: the block can be skipped.

    Notes
    -----
    A rank's own block is one diagonal tile in every layout. The other blocks of
    `Contiguous` and `ZigZag` are one full tile or none, those of `Striped` one diagonal
    tile: all rows for earlier sources, and for later ones the rows after the first (the
    source's key of the same row lies ahead). A staircase of many small steps becomes a full
    tile and a masked one for each group of rows. A mask has at most
    ``max(128**2, rows + keys)`` entries, and of the order of ``sqrt(min(rows, keys))`` groups
    suffice.
    """
    return _tiles(layout, rank, source, world_size, length, causal)


@lru_cache(maxsize=1 << 14)
def _tiles(
    layout: Layout, rank: int, source: int, world_size: int, length: int, causal: bool
) -> tuple[Tile, ...]:
    q_runs = checked_runs(layout, rank, world_size, length)
    k_runs = checked_runs(layout, source, world_size, length)
    rows, keys = sum(run.count for run in q_runs), sum(run.count for run in k_runs)
    if not rows or not keys:
        return ()
    if causal and rank == source:
        return (Tile(range(rows), range(rows), "diagonal"),)
    if not causal or k_runs[-1].last < q_runs[0].start:
        return (Tile(range(rows), range(keys), "full"),)
    if q_runs[-1].last < k_runs[0].start:
        return ()
    return tuple(_cover(merged(stairs(q_runs, k_runs)), rows, keys))


def _cover(staircase: Iterable[Stair], rows: int, keys: int) -> Iterator[Tile]:
    """Gather stairs into groups, as many as fit under one mask."""
    largest_mask = max(SMALL_MASK, rows + keys)
    group: list[Stair] = []
    for stair in staircase:
        if group:
            first = group[0]
            if (stair.stop - first.start) * (stair.top - first.keys) > largest_mask:
                yield from _group_tiles(group)
                group = []
        group.append(stair)
    if group:
        yield from _group_tiles(group)


def _stair_tiles(stair: Stair) -> Iterator[Tile]:
    """No mask: a full tile and, if the stair rises, a diagonal one."""
    rows = range(stair.start, stair.stop)
    if stair.rise == 0:
        yield Tile(rows, range(stair.keys), "full")
        return
    if stair.keys > 1:
        yield Tile(rows, range(stair.keys - 1), "full")
    yield Tile(rows, range(stair.keys - 1, stair.top), "diagonal")


def _group_tiles(group: list[Stair]) -> Iterator[Tile]:
    """A full tile of the keys that all rows see, and a mask over the rest."""
    first, last = group[0], group[-1]
    if len(group) == 1:
        yield from _stair_tiles(first)
        return
    yield Tile(range(first.start, last.stop), range(first.keys), "full")
    # Rows that see no more than the full tile stay out of the mask.
    higher = next(stair for stair in group if stair.top > first.keys)
    masked = range(higher.start + (higher.keys == first.keys), last.stop)
    beyond = sum(stair.pairs - stair.rows * first.keys for stair in group)
    yield Tile(masked, range(first.keys, last.top), "mask", beyond)


def tile_mask(
    layout: Layout,
    rank: int,
    source: int,
    world_size: int,
    length: int,
    tile: Tile,
    *,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Build the mask of a tile of `tiles` from global positions.

    Returns
    -------
    Tensor
        bool ``[len(tile.q), len(tile.k)]``, true where the pair is allowed.
    """
    if tile.kind == "full":
        return torch.ones(len(tile.q), len(tile.k), dtype=torch.bool, device=device)
    queries = _positions_of(layout, rank, world_size, length, tile.q, device)
    keys = _positions_of(layout, source, world_size, length, tile.k, device)
    return queries[:, None] >= keys[None, :]


def _positions_of(
    layout: Layout,
    rank: int,
    world_size: int,
    length: int,
    rows: range,
    device: torch.device | str,
) -> Tensor:
    """Global positions of some local rows; touches only the runs they lie in."""
    runs = checked_runs(layout, rank, world_size, length)
    offsets = row_offsets(layout, rank, world_size, length)
    if not 0 <= rows.start <= rows.stop <= offsets[-1]:
        raise ValueError(
            f"rows {rows.start} to {rows.stop} are not among the {offsets[-1]} tokens "
            f"of rank {rank}."
        )
    parts = []
    index = bisect_right(offsets, rows.start) - 1
    while index < len(runs) and offsets[index] < rows.stop:
        run, offset = runs[index], offsets[index]
        skip = max(rows.start - offset, 0)
        count = min(rows.stop - offset, run.count) - skip
        parts.append(Run(run.start + skip * run.step, run.step, count))
        index += 1
    return run_positions(parts, device)


def keys_needed(
    layout: Layout, rank: int, source: int, world_size: int, length: int, *, causal: bool
) -> int:
    """Count the keys of the source that any query of the rank may see: always its first ones."""
    queries = checked_runs(layout, rank, world_size, length)
    keys = checked_runs(layout, source, world_size, length)
    if not queries:
        return 0
    last = queries[-1].last if causal else length
    return sum(
        min(run.count, (last - run.start) // run.step + 1) for run in keys if run.start <= last
    )


def needed(
    layout: Layout, rank: int, source: int, world_size: int, length: int, *, causal: bool
) -> bool:
    """Say whether the rank's queries may see any key of the source."""
    queries = checked_runs(layout, rank, world_size, length)
    keys = checked_runs(layout, source, world_size, length)
    if not queries or not keys:
        return False
    return not causal or keys[0].start <= queries[-1].last


def last_hop(layout: Layout, source: int, world_size: int, length: int, *, causal: bool) -> int:
    """Find how far a ring must forward a source's block.

    Returns
    -------
    int
        The largest hop t, below ``world_size``, after which the block has reached a rank
        ``(source + t) % world_size`` that needs it; 0 if no other rank does. Under a
        causal mask `Contiguous` gives ``world_size - 1 - source``, half of all messages.
    """
    check_place(source, world_size, length)
    for hop in range(world_size - 1, 0, -1):
        if needed(layout, (source + hop) % world_size, source, world_size, length, causal=causal):
            return hop
    return 0


def pairs(
    layout: Layout, rank: int, source: int, world_size: int, length: int, *, causal: bool
) -> int:
    """Count the (query, key) pairs that a rank computes on a source's block, exactly."""
    if not causal or rank == source:
        rows = row_offsets(layout, rank, world_size, length)[-1]
        keys = row_offsets(layout, source, world_size, length)[-1]
        return rows * (rows + 1) // 2 if causal else rows * keys
    q_runs = checked_runs(layout, rank, world_size, length)
    k_runs = checked_runs(layout, source, world_size, length)
    return sum(stair.pairs for stair in stairs(q_runs, k_runs))


def work(
    layout: Layout, world_size: int, length: int, *, causal: bool
) -> tuple[tuple[int, ...], ...]:
    """Tabulate `pairs`: ``work(...)[rank][source]``, a row's sum being the work of a rank."""
    ranks = range(world_size)
    return tuple(
        tuple(pairs(layout, rank, source, world_size, length, causal=causal) for source in ranks)
        for rank in ranks
    )
