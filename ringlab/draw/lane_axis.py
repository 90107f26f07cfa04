"""The axis of a timeline: four lanes a rank, bars on them, time below."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from ringlab.draw.lanes import LANES, Bar, Bars, Lane
from ringlab.draw.picture import legend, plain, settle
from ringlab.draw.theme import Theme
from ringlab.draw.units import seconds_text, seconds_unit, share_text
from ringlab.timeline.spans import length

MOST_RANKS = 16

# Of a rank's band, which is 1 high, from the top: where a lane begins and how high it is.
_PLACE: dict[Lane, tuple[float, float]] = {
    "compute": (0.08, 0.34),
    "send": (0.43, 0.15),
    "receive": (0.59, 0.15),
    "wait": (0.75, 0.15),
}
_ROOM_FOR_TEXT = 0.065
_HATCH: dict[Lane, str] = {"compute": "", "send": "////", "receive": "\\\\\\\\", "wait": "----"}
_COLOUR: dict[Lane, int] = {"compute": 0, "send": 1, "receive": 2, "wait": 3}
_EXPOSED = "xx"


def draw_lanes(axis: Axes, bars: Bars, ranks: Sequence[int], theme: Theme, *, span: float) -> None:
    """Draw one rectangle for each bar, and beside each rank how much communication is exposed.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    bars : Bars
    ranks : sequence of int
        From the top.
    theme : Theme
    span : float
        Length of the whole axis; bars that are a good part of it carry their step.
    """
    plain(axis, theme)
    axis.patch.set_gid("stage")
    for place, rank in enumerate(ranks):
        if place:
            axis.axhline(place, color=theme.faint, linewidth=0.6, alpha=0.6)
        for bar in bars.bars:
            if bar.event.rank == rank:
                axis.add_patch(_rectangle(bar, place, theme))
                if bar.lanes[0] == "compute" and bar.length > _ROOM_FOR_TEXT * span:
                    axis.text(
                        (bar.start + bar.end) / 2,
                        place + 0.25,
                        f"step {bar.event.step}",
                        fontsize=7.5,
                        color=theme.panel,
                        ha="center",
                        va="center",
                    )
        if bars.clocked:
            _mark_exposed(axis, bars, rank, place, theme)
    settle(axis)
    if bars.clocked:
        _note_exposed(axis, bars, ranks, theme)
    axis.set_yticks([place + 0.5 for place in range(len(ranks))], [f"rank {r}" for r in ranks])
    axis.set_ylim(len(ranks), 0)


def _mark_exposed(axis: Axes, bars: Bars, rank: int, place: int, theme: Theme) -> None:
    top, height = _PLACE["compute"]
    for number, (start, end) in enumerate(bars.exposed(rank)):
        axis.add_patch(
            Rectangle((start, place + top), end - start, height, facecolor="none",
                      edgecolor=theme.alarm, linewidth=1.0, linestyle=":", hatch=_EXPOSED,
                      gid=f"exposed-{rank}-{number}")
        )  # fmt: skip


def _note_exposed(axis: Axes, bars: Bars, ranks: Sequence[int], theme: Theme) -> None:
    for place, rank in enumerate(ranks):
        seconds = length(bars.exposed(rank))
        note = f"exposed {seconds_text(seconds)}\n{share_text(seconds, bars.end)}"
        axis.text(1.01, place + 0.5, note if seconds else "all hidden", fontsize=8, va="center",
                  color=theme.ink, transform=axis.get_yaxis_transform())  # fmt: skip


def _rectangle(bar: Bar, place: int, theme: Theme) -> Rectangle:
    lane = bar.lanes[0]
    top, last = _PLACE[lane][0], _PLACE[bar.lanes[-1]]
    edge = theme.ink if lane == "compute" else _edge(lane, theme)
    return Rectangle((bar.start, place + top), bar.length, last[0] + last[1] - top,
                     facecolor=_fill(lane, theme), edgecolor=edge, linewidth=0.6,
                     hatch=_HATCH[lane], gid=f"event-{bar.number}")  # fmt: skip


def _edge(lane: Lane, theme: Theme) -> str:
    return theme.colour(_COLOUR[lane])


def _fill(lane: Lane, theme: Theme) -> str:
    return theme.tint(_COLOUR[lane], 1.0 if lane == "compute" else 0.25)


def time_axis(axis: Axes, end: float, clocked: bool, theme: Theme) -> None:
    """Label the axis of time: seconds in a unit that fits, or steps."""
    axis.set_xlim(0, end)
    axis.grid(axis="x", color=theme.faint, alpha=0.25)
    if not clocked:
        axis.set_xlabel("step")
        axis.set_xticks(range(round(end) + 1))
        return
    scale, unit = seconds_unit(end)
    axis.set_xlabel(f"time ({unit})")
    axis.xaxis.set_major_formatter(lambda seconds, _: f"{seconds / scale:g}")


def explain_lanes(figure: Figure, clocked: bool, theme: Theme) -> None:
    """Put the key of the lanes below the figure, in the order in which they lie."""
    handles = [
        Patch(facecolor=_fill(lane, theme), edgecolor=_edge(lane, theme), hatch=_HATCH[lane],
              label=lane)
        for lane in LANES
    ]  # fmt: skip
    if clocked:
        handles.append(
            Patch(facecolor="none", edgecolor=theme.alarm, linestyle=":", hatch=_EXPOSED,
                  label="exposed: communication, no compute")
        )  # fmt: skip
    legend(figure, theme, handles, columns=5)
