"""A deadlock: who waits for whom, with the lines of code."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch

from ringlab.draw.picture import Picture, sheet
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.world.errors import Deadlock, PeerLeft, Wait

MOST_RANKS = 12
Place = tuple[float, float]
_OUTSIDE = 1.3


def draw_deadlock(
    error: Deadlock | PeerLeft, *, title: str | None = None, theme: ThemeName = "light"
) -> Picture:
    """Draw the ranks that wait for one another, and beside them the lines at which they stand.

    Parameters
    ----------
    error : Deadlock or PeerLeft
        As a virtual world raised it.
    title : str, optional
        Instead of the finding that the picture states by itself: the cycle.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        One arrow for each wait, from the rank that waits to the rank it waits for: a solid one
        in the cycle, a dashed one outside it. The number on the arrow leads to its line of code.

    Raises
    ------
    ValueError
        If the error carries no waits, or more than 12 ranks wait.
    """
    waits, cycle = error.waits, getattr(error, "cycle", ())
    ranks = {rank for wait in waits for rank in (wait.rank, wait.other)}
    if not waits:
        raise ValueError("this error carries no waits; catch one that a virtual world raised.")
    if len(ranks) > MOST_RANKS:
        raise ValueError(f"{len(ranks)} ranks are too many to draw; at most {MOST_RANKS} can be.")
    look = theme_named(theme)
    figure = sheet(9.4, max(3.7, 0.7 + 0.56 * len(waits)), look)
    graph, listing = figure.subplots(1, 2, width_ratios=(1.1, 1.6))
    places = _places(cycle, waits)
    around = set(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
    circles = {
        rank: _draw_rank(graph, place, rank, rank in cycle, look) for rank, place in places.items()
    }
    for number, wait in enumerate(waits, 1):
        inside = (wait.rank, wait.other) in around
        _draw_wait(graph, number, circles[wait.rank], circles[wait.other], inside, look)
    xs, ys = [x for x, _ in places.values()], [y for _, y in places.values()]
    graph.set_xlim(min(-1.2, min(xs) - 0.4), max(1.2, max(xs) + 0.4))
    graph.set_ylim(min(-1.2, min(ys) - 0.4), max(1.6 if len(ys) == 1 else 1.2, max(ys) + 0.4))
    graph.set_aspect("equal")
    graph.set_axis_off()
    _list_lines(listing, waits, look)
    figure.suptitle(title or _finding(cycle, waits), fontsize=12.5, color=look.ink)
    return Picture(figure, _words(cycle, waits))


def _places(cycle: Sequence[int], waits: Sequence[Wait]) -> dict[int, Place]:
    """The ranks of the cycle on a circle; outside it each rank near the one it waits for."""
    on_circle = cycle or tuple(dict.fromkeys(r for wait in waits for r in (wait.rank, wait.other)))
    count = len(on_circle)
    radius = max(1.0, 0.7 / sin(pi / count)) if count > 1 else 0.0  # circles keep their distance
    angles = {rank: 2 * pi * number / len(on_circle) for number, rank in enumerate(on_circle)}
    places = {rank: (radius * sin(a), radius * cos(a)) for rank, a in angles.items()}
    apart = 1.4 / (radius + _OUTSIDE)
    for wait in reversed(waits):  # the last one waits for a rank of the cycle
        if wait.rank not in angles:
            near = angles.get(wait.other, 0.0)
            while any(abs(near - a) < 0.99 * apart for r, a in angles.items() if r not in cycle):
                near += apart
            angles[wait.rank] = near
            far = radius + _OUTSIDE
            places[wait.rank] = (far * sin(near), far * cos(near))
    return places


def _draw_rank(axis: Axes, place: Place, rank: int, in_cycle: bool, theme: Theme) -> Circle:
    circle = Circle(place, 0.31, facecolor=theme.panel, linewidth=2.0 if in_cycle else 1.2,
                    edgecolor=theme.alarm if in_cycle else theme.faint, zorder=3,
                    gid=f"rank-{rank}")  # fmt: skip
    axis.add_patch(circle)
    axis.text(*place, f"rank {rank}", ha="center", va="center", fontsize=8.5, color=theme.ink,
              zorder=4)  # fmt: skip
    return circle


def _draw_wait(
    axis: Axes, number: int, waiting: Circle, other: Circle, inside: bool, theme: Theme
) -> None:
    start, end, bend = waiting.center, other.center, 0.2
    ends: tuple[Circle | None, Circle | None] = (waiting, other)
    if waiting is other:  # a loop above the circle
        start, end, bend = (
            (start[0] - 0.2, start[1] + 0.24),
            (start[0] + 0.2, start[1] + 0.24),
            -2.0,
        )
        ends = (None, None)
    axis.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=15, shrinkA=0, shrinkB=1,
                        patchA=ends[0], patchB=ends[1], connectionstyle=f"arc3,rad={bend}",
                        linewidth=2.0 if inside else 1.3, linestyle="-" if inside else "--",
                        color=theme.alarm if inside else theme.faint, gid=f"wait-{number}")
    )  # fmt: skip
    _draw_number(axis, _middle(start, end, bend), number, theme)


def _draw_number(axis: Axes, place: Place, number: int, theme: Theme) -> None:
    axis.text(*place, f"{number}", ha="center", va="center", fontsize=9, color=theme.ink, zorder=5,
              bbox={"boxstyle": "circle,pad=0.25", "facecolor": theme.paper,
                    "edgecolor": theme.ink, "linewidth": 0.7})  # fmt: skip


def _middle(start: Place, end: Place, bend: float) -> Place:
    """The middle of matplotlib's arc3 between two points."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    return ((start[0] + end[0]) / 2 + bend * dy / 2, (start[1] + end[1]) / 2 - bend * dx / 2)


def _list_lines(axis: Axes, waits: Sequence[Wait], theme: Theme) -> None:
    axis.set_axis_off()
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    height = 1 / len(waits)
    for number, wait in enumerate(waits, 1):
        top = 1 - (number - 0.5) * height
        _draw_number(axis, (0, top), number, theme)
        axis.text(0.06, top, f"rank {wait.rank} waits for rank {wait.other}: {wait.operation}\n"
                  f"{wait.site}", fontsize=9, color=theme.ink, va="center",
                  linespacing=1.5)  # fmt: skip


def _finding(cycle: Sequence[int], waits: Sequence[Wait]) -> str:
    if not cycle:
        return f"Rank {waits[-1].other} has returned, and rank {waits[-1].rank} waits for it"
    if len(cycle) == 1:
        return f"Rank {cycle[0]} waits for itself"
    chain = ", ".join(f"{rank} for {other}" for rank, other in
                      zip(cycle, [*cycle[1:], cycle[0]], strict=True))  # fmt: skip
    return f"Nobody can go on: rank {chain}"


def _words(cycle: Sequence[int], waits: Sequence[Wait]) -> str:
    told = "; ".join(
        f"rank {wait.rank} waits for rank {wait.other}, {wait.operation} at {wait.site}"
        for wait in waits
    )
    return f"A graph of {len(waits)} waits. {_finding(cycle, waits)}. {told}."
