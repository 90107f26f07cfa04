"""The ring, step by step: ranks on a circle, the block each holds, what each sends."""

from __future__ import annotations

from collections import defaultdict
from math import ceil, cos, pi, sin
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from ringlab.draw.picture import FAINT, HATCHES, INK, PALETTE, Picture, bytes_text, sheet
from ringlab.timeline import Timeline

MOST_RANKS = 12


def draw_ring(timeline: Timeline, *, title: str | None = None) -> Picture:
    """Draw what a ring sent, one circle for each step, from the record of its run.

    Parameters
    ----------
    timeline : Timeline
        Of a run whose point-to-point messages form a ring (each rank passes on what it was
        given). At most 12 ranks, so that the labels can be read.
    title : str, optional
        Instead of the finding that the picture states by itself.

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
    world = timeline.world_size
    if world > MOST_RANKS:
        raise ValueError(f"{world} ranks are too many to draw; draw a run of up to {MOST_RANKS}.")
    steps = ring_steps(timeline)
    if not steps or not any(sends for _, sends in steps):
        raise ValueError("this timeline holds no point-to-point message; run a ring first.")
    columns = min(len(steps), 4)
    rows = ceil(len(steps) / columns)
    scale = _Scale(world)
    figure = sheet(scale.panel * columns, scale.panel * rows + 0.75)
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for number, ((held, sends), axis) in enumerate(zip(steps, axes.flat, strict=False)):
        _draw_step(axis, number, held, sends, scale)
    total = {timeline.bytes_sent(rank) for rank in range(world)}
    most = bytes_text(max(total))
    finding = (
        f"{len(steps) - 1} hops carry every block past every rank; each rank sends {most}"
        if len(total) == 1
        else f"{len(steps) - 1} hops; the busiest rank sends {most}"
    )
    figure.suptitle(title or finding, color=INK, fontsize=13)
    return Picture(figure, _alt(timeline, steps))


Send = tuple[int, int, int]
Step = tuple[list[int], list[Send]]


def ring_steps(timeline: Timeline) -> list[Step]:
    """For each step: the block each rank holds, and the sends ``(from, to, bytes)``.

    The k-th send over an edge is received by the k-th receive over it.
    """
    launches: list[list[list[Any]]] = []
    for rank in range(timeline.world_size):
        by_launch: dict[int, list[Any]] = defaultdict(list)
        for event in timeline.of(rank):
            if event.kind in ("send", "recv"):
                by_launch[event.launch].append(event)
        launches.append(list(by_launch.values()))
    held = list(range(timeline.world_size))
    steps: list[Step] = []
    for hop in range(max((len(own) for own in launches), default=0)):
        here = [e for own in launches if hop < len(own) for e in own[hop]]
        sends = [(e.rank, e.peer, e.bytes_out) for e in here if e.kind == "send"]
        steps.append((list(held), sends))
        held = list(held)
        for e in here:
            if e.kind == "recv" and e.peer is not None:
                held[e.rank] = steps[-1][0][e.peer]
    if steps:
        steps.append((held, []))
    return steps


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


def _draw_step(axis: Axes, number: int, held: list[int], sends: list[Send], scale: _Scale) -> None:
    places = [scale.place(rank, len(held)) for rank in range(len(held))]
    for rank, (x, y) in enumerate(places):
        _draw_rank(axis, x, y, rank, held[rank], scale)
    for source, target, count in sends:
        _draw_arrow(axis, places[source], places[target], PALETTE[held[source] % 8],
                    bytes_text(count), scale)  # fmt: skip
    name = f"step {number}" if sends else f"step {number} (no hop)"
    axis.set_title(name, fontsize=10.5, color=INK)
    axis.set_xlim(-scale.reach, scale.reach)
    axis.set_ylim(-scale.reach, scale.reach)
    axis.set_aspect("equal")


def _draw_rank(axis: Axes, x: float, y: float, rank: int, block: int, scale: _Scale) -> None:
    axis.add_patch(
        FancyBboxPatch((x - 0.3, y - 0.22), 0.6, 0.44, boxstyle="round,pad=0.04",
                       facecolor=PALETTE[block % 8] + "33", edgecolor=PALETTE[block % 8],
                       linewidth=1.6, hatch=HATCHES[block // 8 % 8])
    )  # fmt: skip
    axis.text(x, y + 0.1, f"rank {rank}", ha="center", va="center",
              fontsize=8.5 * scale.font, color=INK)  # fmt: skip
    axis.text(x, y - 0.1, f"KV {block}", ha="center", va="center",
              fontsize=10.5 * scale.font, color=INK, fontweight="bold")  # fmt: skip


def _draw_arrow(axis: Axes, start: tuple[float, float], end: tuple[float, float], colour: str,
                label: str, scale: _Scale) -> None:  # fmt: skip
    gap = 0.38 * scale.points
    clockwise = start[0] * end[1] - start[1] * end[0] <= 0
    axis.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>",
                        connectionstyle=f"arc3,rad={-0.25 if clockwise else 0.25}",
                        mutation_scale=12 * scale.font, linewidth=1.8, color=colour,
                        shrinkA=gap, shrinkB=gap)
    )  # fmt: skip
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    away = (scale.radius + 0.28) / ((x * x + y * y) ** 0.5 or 1.0)
    axis.text(x * away, y * away, label, ha="center", va="center", fontsize=7.5 * scale.font,
              color=INK, bbox={"facecolor": "white", "edgecolor": FAINT, "linewidth": 0.4,
                               "boxstyle": "round,pad=0.15"})  # fmt: skip


def _alt(timeline: Timeline, steps: list[Step]) -> str:
    world = timeline.world_size
    sends = sum(len(s) for _, s in steps)
    last = "; ".join(f"rank {rank} holds KV {block}" for rank, block in enumerate(steps[-1][0]))
    return (
        f"A ring of {world} ranks in {len(steps) - 1} hops. At step 0 rank r holds block KV r. "
        f"In each hop every arrow carries the block in hand to the neighbouring rank, {sends} "
        f"messages in all. At the end {last}."
    )
