"""Longest paths through causes and effects, level by level.

Every moment is the latest of a few others, each plus a fixed duration. Moments that do not
depend on one another stand on one level and are computed together, as arrays: the same
causes are gone through once for each layer of a model, so they are put in order once.
"""

from __future__ import annotations

import numpy as np

from ringlab.price.columns import Numbers


class Circle(ValueError):
    """Moments that wait for one another.

    Parameters
    ----------
    moments : array
    """

    def __init__(self, moments: Numbers) -> None:
        self.moments = moments
        super().__init__("moments wait for one another in a circle.")


class Graph:
    """Which moments follow from which.

    Parameters
    ----------
    moments : int
        How many there are.
    causes, effects : array
        Edge by edge, from a moment to one that is not before it.

    Raises
    ------
    Circle
        If some moments wait for one another.
    """

    def __init__(self, moments: int, causes: Numbers, effects: Numbers) -> None:
        level = _levels(moments, causes, effects)
        self._order = np.argsort(level[effects] * moments + effects, kind="stable")
        self._causes = causes[self._order]
        sorted_effects = effects[self._order]
        new = np.diff(sorted_effects, prepend=-1) != 0
        self._starts = np.flatnonzero(new)  # where the edges of each effect begin
        self._effects = sorted_effects[self._starts]
        of_effect = level[self._effects]
        bounds = np.flatnonzero(np.diff(of_effect, prepend=-1, append=-1))
        edges = np.append(self._starts, len(causes))
        self._spans = [
            (low, high, int(edges[low]), int(edges[high]))
            for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]

    def latest(self, begin: Numbers, delay: Numbers) -> Numbers:
        """All moments.

        Parameters
        ----------
        begin : array
            Before which a moment is not.
        delay : array
            Edge by edge, as they were given.

        Returns
        -------
        array
            The earliest time of each moment that its causes and `begin` allow.
        """
        time = begin.copy()
        delay = delay[self._order]
        for low, high, first, last in self._spans:
            arriving = time[self._causes[first:last]]
            arriving += delay[first:last]
            latest = np.maximum.reduceat(arriving, self._starts[low:high] - first)
            effects = self._effects[low:high]
            time[effects] = np.maximum(time[effects], latest)
        return time


def _levels(moments: int, causes: Numbers, effects: Numbers) -> Numbers:
    """Of each moment the number of edges of the longest chain that leads to it."""
    order = np.argsort(causes, kind="stable")
    following = effects[order]
    counts = np.bincount(causes, minlength=moments)
    first = np.cumsum(counts) - counts
    open_ = np.bincount(effects, minlength=moments)
    level = np.full(moments, -1, dtype=np.int64)
    ready = np.flatnonzero(open_ == 0)
    number = 0
    while len(ready):
        level[ready] = number
        number += 1
        sizes = counts[ready]
        inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        reached = following[np.repeat(first[ready], sizes) + inside]
        np.subtract.at(open_, reached, 1)
        ready = np.unique(reached[open_[reached] == 0])
    if (level < 0).any():
        raise Circle(np.flatnonzero(level < 0))
    return level
