"""Curves over a doubling axis, told apart by marker, dash and a label at their end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes

from ringlab.draw.theme import Theme

_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ("-", "--", "-.", ":")


class Crossing(NamedTuple):
    """Where the curve of one method meets that of another.

    Attributes
    ----------
    x, y : float
        Between two given points it is found on the straight line of the doubly logarithmic
        picture.
    before, after : str
        The lower one on the left, and on the right.
    """

    x: float
    y: float
    before: str
    after: str


def crossings(
    xs: Sequence[float], series: Mapping[str, Sequence[float]], *, lowest: bool = True
) -> list[Crossing]:
    """Find where curves cross, from the left.

    Parameters
    ----------
    xs : sequence of float
        Ascending, above 0.
    series : mapping of str to sequence of float
        One value above 0 for each x.
    lowest : bool
        Only where the lowest of all changes hands.
    """
    names, found = list(series), []
    for one in range(len(names)):
        for other in range(one):
            found += _between(xs, names[other], names[one], series)
    if lowest:
        found = [c for c in found if c.y <= _least(c.x, xs, series) * (1 + 1e-9)]
    return sorted(found)


def _between(
    xs: Sequence[float], a: str, b: str, series: Mapping[str, Sequence[float]]
) -> list[Crossing]:
    gaps = [math.log(x) - math.log(y) for x, y in zip(series[a], series[b], strict=True)]
    apart = [i for i, gap in enumerate(gaps) if gap]  # where they do not touch
    found = []
    for i, following in pairwise(apart):
        if gaps[i] * gaps[following] < 0:
            j = i + 1  # the next point, or the first at which they touch
            part = gaps[i] / (gaps[i] - gaps[j])
            x = _mixed(xs[i], xs[j], part)
            y = _mixed(series[a][i], series[a][j], part)
            found.append(Crossing(x, y, *((a, b) if gaps[i] < 0 else (b, a))))
    return found


def _mixed(start: float, end: float, part: float) -> float:
    return math.exp((1 - part) * math.log(start) + part * math.log(end))


def _least(x: float, xs: Sequence[float], series: Mapping[str, Sequence[float]]) -> float:
    i = max(0, min(len(xs) - 2, sum(1 for known in xs if known <= x) - 1))
    part = math.log(x / xs[i]) / math.log(xs[i + 1] / xs[i])
    return min(_mixed(ys[i], ys[i + 1], part) for ys in series.values())


def check_series(xs: Sequence[float], series: Mapping[str, Sequence[float]], what: str) -> None:
    """Refuse what a logarithmic picture cannot show.

    Raises
    ------
    ValueError
        If lengths differ, there are fewer than two points, or a value is not above 0.
    """
    if len(xs) < 2 or any(b <= a for a, b in itertools.pairwise(xs)):
        raise ValueError(f"give two ascending values or more along the axis; got {list(xs)}.")
    for name, ys in series.items():
        if len(ys) != len(xs):
            raise ValueError(f"{name} has {len(ys)} {what} for {len(xs)} points.")
        if min(ys) <= 0 or xs[0] <= 0:
            raise ValueError(f"a logarithmic axis shows values above 0; {name} has {min(ys)}.")


def draw_curves(
    axis: Axes,
    series: Mapping[str, Sequence[tuple[float, float]]],
    theme: Theme,
    order: Sequence[str] = (),
) -> None:
    """Draw each series of points ``(x, y)`` as a line with markers; its name goes into the key.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    series : mapping of str to sequence of (float, float)
    theme : Theme
    order : sequence of str, optional
        All names of the picture, if `series` has only some of them: a name looks the same on
        every axis.
    """
    names = list(order or series)
    for name, points in series.items():
        number = names.index(name)
        xs, ys = [x for x, _ in points], [y for _, y in points]
        axis.plot(xs, ys, marker=_MARKERS[number % 8], linestyle=_DASHES[number % 4], label=name,
                  color=theme.colour(number), markersize=5.5, linewidth=1.6,
                  markeredgecolor=theme.ink, markeredgewidth=0.5,
                  gid=f"curve-{number}")  # fmt: skip
