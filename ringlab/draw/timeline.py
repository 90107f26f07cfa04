"""The timeline: for each rank what it computes, sends, receives and waits for."""

from __future__ import annotations

from collections.abc import Iterable

from ringlab.draw.lane_axis import MOST_RANKS, draw_lanes, explain_lanes, time_axis
from ringlab.draw.lanes import Bars, bars_of, ranks_to_draw
from ringlab.draw.picture import Picture, sheet
from ringlab.draw.theme import ThemeName, theme_named
from ringlab.draw.units import seconds_text, share_text
from ringlab.timeline import Timeline
from ringlab.timeline.spans import length


def draw_timeline(
    timeline: Timeline,
    *,
    ranks: Iterable[int] | None = None,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw what each rank did when, on four lanes a rank, with exposed communication marked.

    Parameters
    ----------
    timeline : Timeline
        Measured or priced, then the axis is in seconds; or without a clock, then it counts
        steps.
    ranks : iterable of int, optional
        Which ranks to draw, at most 16; all of them by default.
    title : str, optional
        Instead of the finding that the picture states by itself.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        One bar for each event that takes time. Communication is exposed where a rank has
        a message under way, or waits for one, and computes nothing.

    Raises
    ------
    ValueError
        If the timeline is empty, or the ranks cannot be drawn.
    """
    chosen, look = ranks_to_draw(timeline, ranks, MOST_RANKS), theme_named(theme)
    bars = bars_of(timeline)
    figure = sheet(9.0, 1.35 + 0.62 * len(chosen), look)
    axis = figure.subplots()
    draw_lanes(axis, bars, chosen, look, span=bars.end)
    time_axis(axis, bars.end, bars.clocked, look)
    explain_lanes(figure, bars.clocked, look)
    axis.set_title(title or finding(bars, chosen), fontsize=12, color=look.ink)
    return Picture(figure, _words(bars, chosen))


def finding(bars: Bars, ranks: Iterable[int]) -> str:
    """What a timeline shows, in one line."""
    chosen = list(ranks)
    if not bars.clocked:
        sends = sum(len(bars.of(rank, "send")) for rank in chosen)
        return f"{len(chosen)} ranks, {bars.end:.0f} steps, {sends} messages; no clock, only order"
    exposed = {rank: length(bars.exposed(rank)) for rank in chosen}
    worst = max(chosen, key=lambda rank: exposed[rank])
    done = f"Done in {seconds_text(bars.end)}"
    if not exposed[worst]:
        return f"{done}; every message hides behind compute"
    return (
        f"{done}; rank {worst} has communication exposed for {share_text(exposed[worst], bars.end)}"
    )


def _words(bars: Bars, ranks: tuple[int, ...]) -> str:
    if not bars.clocked:
        told = "; ".join(
            f"rank {rank}: {len(bars.of(rank, 'compute'))} computations, "
            f"{len(bars.of(rank, 'send'))} sends, {len(bars.of(rank, 'receive'))} receives, "
            f"{len(bars.of(rank, 'wait'))} waits"
            for rank in ranks
        )
        return f"A timeline by step, without a clock, {bars.end:.0f} steps. {told}."
    told = "; ".join(
        f"rank {rank} computes {seconds_text(bars.time(rank, 'compute'))}, sends "
        f"{seconds_text(bars.time(rank, 'send'))}, waits {seconds_text(bars.time(rank, 'wait'))}, "
        f"exposed {seconds_text(length(bars.exposed(rank)))}"
        for rank in ranks
    )
    return f"A timeline of {seconds_text(bars.end)}. {told}."
