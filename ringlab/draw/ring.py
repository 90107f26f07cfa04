"""The ring, step by step: ranks on a circle, the block each holds, what each sends."""

from __future__ import annotations

from math import ceil, cos, pi, sin

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from ringlab.draw.picture import Picture, settle, sheet
from ringlab.draw.ring_steps import Send, checked_steps, ring_finding, ring_words
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.draw.units import bytes_text
from ringlab.timeline import Timeline


def draw_ring(
    timeline: Timeline, *, title: str | None = None, theme: ThemeName = "light"
) -> Picture:
    """Draw what a ring sent, one circle for each step, from the record of its run.

    Parameters
    ----------
    timeline : Timeline
        Of a run whose point-to-point messages form a ring (each rank passes on what it was
        given). At most 12 ranks, so that the labels can be read.
    title : str, optional
        Instead of the finding that the picture states by itself.
    theme : {"light", "dark"}

    Returns
    -------
    Picture

    Raises
    ------
    ValueError
        If there are more than 12 ranks, or no message.

    Notes
    -----
    The block in hand is followed through the messages: at first a rank holds its own, then
    whatever its last message brought. One arrow is drawn for each send in the timeline.
    """
    steps, look = checked_steps(timeline), theme_named(theme)
    columns = min(len(steps), 4)
    rows = ceil(len(steps) / columns)
    scale = _Scale(timeline.world_size)
    figure = sheet(scale.panel * columns, scale.panel * rows + 0.75, look)
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
        axis.set(xticks=[], yticks=[])
    for number, ((held, sends), axis) in enumerate(zip(steps, axes.flat, strict=False)):
        _draw_step(axis, number, held, sends, scale, look)
    figure.suptitle(title or ring_finding(timeline, steps), color=look.ink, fontsize=13)
    return Picture(figure, ring_words(timeline, steps))


class _Scale:
    """Sizes for a circle of so many ranks: boxes keep their distance, text its proportion."""

    def __init__(self, ranks: int) -> None:
        self.radius = max(1.0, 0.72 / sin(pi / max(ranks, 2)))
        self.reach = self.radius + 0.78
        self.panel = 3.1 * (self.reach / 1.78) ** 0.75  # inches
        self.points = self.panel * 72 / (2 * self.reach)  # of one unit of the drawing
        self.font = self.points / 63

    def place(self, rank: int, ranks: int) -> tuple[float, float]:
        """Where a rank stands, clockwise from the top."""
        angle = 2 * pi * rank / ranks
        return self.radius * sin(angle), self.radius * cos(angle)


def _draw_step(
    axis: Axes, number: int, held: list[int], sends: list[Send], scale: _Scale, theme: Theme
) -> None:
    places = [scale.place(rank, len(held)) for rank in range(len(held))]
    for rank, (x, y) in enumerate(places):
        _draw_rank(axis, (x, y), rank, held[rank], scale, theme)
    for source, target, count in sends:
        _draw_arrow(axis, (places[source], places[target]), held[source], count, scale, theme)
    settle(axis)
    name = f"step {number}" if sends else f"step {number} (no hop)"
    axis.set_title(name, fontsize=10.5, color=theme.ink)
    axis.set_xlim(-scale.reach, scale.reach)
    axis.set_ylim(-scale.reach, scale.reach)
    axis.set_aspect("equal")


def _draw_rank(
    axis: Axes, place: tuple[float, float], rank: int, block: int, scale: _Scale, theme: Theme
) -> None:
    x, y = place
    axis.add_patch(
        FancyBboxPatch((x - 0.3, y - 0.22), 0.6, 0.44, boxstyle="round,pad=0.04",
                       facecolor=theme.tint(block), edgecolor=theme.colour(block),
                       linewidth=1.6, hatch=theme.hatch(block))
    )  # fmt: skip
    axis.text(x, y + 0.1, f"rank {rank}", ha="center", va="center",
              fontsize=8.5 * scale.font, color=theme.ink)  # fmt: skip
    axis.text(x, y - 0.1, f"KV {block}", ha="center", va="center",
              fontsize=10.5 * scale.font, color=theme.ink, fontweight="bold")  # fmt: skip


def _draw_arrow(
    axis: Axes,
    ends: tuple[tuple[float, float], tuple[float, float]],
    block: int,
    count: int,
    scale: _Scale,
    theme: Theme,
) -> None:
    start, end = ends
    gap = 0.38 * scale.points
    clockwise = start[0] * end[1] - start[1] * end[0] <= 0
    axis.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>",
                        connectionstyle=f"arc3,rad={-0.25 if clockwise else 0.25}",
                        mutation_scale=12 * scale.font, linewidth=1.8, color=theme.colour(block),
                        shrinkA=gap, shrinkB=gap)
    )  # fmt: skip
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    away = (scale.radius + 0.28) / ((x * x + y * y) ** 0.5 or 1.0)
    frame = {"facecolor": theme.panel, "edgecolor": theme.faint, "linewidth": 0.4,
             "boxstyle": "round,pad=0.15"}  # fmt: skip
    axis.text(x * away, y * away, bytes_text(count), ha="center", va="center", color=theme.ink,
              fontsize=7.5 * scale.font, bbox=frame)  # fmt: skip
