"""Where the tokens of a prefilled prompt go: from the shards of any layout to their owners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ringlab.decode.ownership import owner_of, row_of
from ringlab.layout import Interleaved, Layout
from ringlab.layout.layout import checked_runs

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Route:
    """Where the tokens of one rank's shard go.

    Attributes
    ----------
    rows : tuple of array
        For each destination the rows of the shard that go there, ascending.
    targets : tuple of array
        For each destination the rows of its cache that they become.
    """

    rows: tuple[Rows, ...]
    targets: tuple[Rows, ...]

    def counts(self) -> tuple[int, ...]:
        """Tokens for each destination."""
        return tuple(len(rows) for rows in self.rows)


@lru_cache(maxsize=2)  # all layers of a model use one; it holds 16 bytes a token
def find_routes(
    layout: Layout, owners: Interleaved, world_size: int, length: int, start: int
) -> tuple[Route, ...]:
    """Find the way of every token of a prompt, source by source.

    Not with tensors: which rank computes what is kept would then stand in the record of a run.

    Parameters
    ----------
    layout : Layout
        Of the prompt's shards.
    owners : Interleaved
        Of the cache.
    world_size, length : int
        Ranks, and tokens of the prompt.
    start : int
        Tokens that the cache already holds.
    """
    return tuple(
        _route(_positions(layout, source, world_size, length) + start, owners, world_size)
        for source in range(world_size)
    )


def _positions(layout: Layout, rank: int, world_size: int, length: int) -> Rows:
    runs = checked_runs(layout, rank, world_size, length)
    parts = [np.arange(run.start, run.last + 1, run.step, dtype=np.int64) for run in runs]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _route(positions: Rows, owners: Interleaved, world_size: int) -> Route:
    destinations = owner_of(positions, owners, world_size)
    rows = np.argsort(destinations, kind="stable")
    ends = np.cumsum(np.bincount(destinations, minlength=world_size))[:-1]
    targets = row_of(positions[rows], owners, world_size)
    return Route(tuple(np.split(rows, ends)), tuple(np.split(targets, ends)))
