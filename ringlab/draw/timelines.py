"""Several timelines on one axis of time, to compare."""

from __future__ import annotations

from collections.abc import Mapping

from ringlab.draw.lane_axis import MOST_RANKS, draw_lanes, explain_lanes, time_axis
from ringlab.draw.lanes import Bars, bars_of
from ringlab.draw.picture import Picture, sheet
from ringlab.draw.theme import ThemeName, theme_named
from ringlab.draw.units import seconds_text, share_text
from ringlab.timeline import Timeline
from ringlab.timeline.spans import length


def draw_timelines(
    timelines: Mapping[str, Timeline], *, title: str | None = None, theme: ThemeName = "light"
) -> Picture:
    """Draw timelines one above the other, on one axis of time, each with a line at its end.

    Parameters
    ----------
    timelines : mapping of str to Timeline
        By name, in the order in which to draw them; all with a clock, or none. Together they
        have at most 16 ranks.
    title : str, optional
        Instead of the finding that the picture states by itself: which is done first.
    theme : {"light", "dark"}

    Returns
    -------
    Picture

    Raises
    ------
    ValueError
        If there are fewer than two, some have a clock and some none, or there are too many
        ranks.
    """
    look = theme_named(theme)
    if len(timelines) < 2:
        raise ValueError(f"give two timelines or more to compare; got {list(timelines)}.")
    bars = {name: bars_of(timeline) for name, timeline in timelines.items()}
    if len({one.clocked for one in bars.values()}) > 1:
        timed = [name for name, one in bars.items() if one.clocked]
        raise ValueError(f"only {timed} have a clock; price the others first, or compare by step.")
    clocked = all(one.clocked for one in bars.values())
    sizes = [timeline.world_size for timeline in timelines.values()]
    if sum(sizes) > MOST_RANKS:
        raise ValueError(f"{sum(sizes)} ranks in all cannot be drawn; at most {MOST_RANKS} can.")
    end = max(one.end for one in bars.values())
    figure = sheet(9.0, 1.5 + 0.35 * len(bars) + 0.56 * sum(sizes), look)
    axes = figure.subplots(len(bars), sharex=True, height_ratios=sizes)
    for axis, (name, one) in zip(axes, bars.items(), strict=True):
        draw_lanes(axis, one, range(timelines[name].world_size), look, span=end)
        axis.axvline(one.end, color=look.ink, linewidth=1.6, linestyle="--", gid="end")
        axis.set_title(f"{name}: {_length(one)}", fontsize=10.5, color=look.ink, loc="left")
        time_axis(axis, end * 1.002, clocked, look)
        axis.label_outer()
    explain_lanes(figure, clocked, look)
    figure.suptitle(title or _finding(bars), fontsize=12, color=look.ink)
    return Picture(figure, _words(bars))


def _length(bars: Bars) -> str:
    return seconds_text(bars.end) if bars.clocked else f"{bars.end:.0f} steps"


def _finding(bars: dict[str, Bars]) -> str:
    first = min(bars, key=lambda name: bars[name].end)
    last = max(bars, key=lambda name: bars[name].end)
    if bars[first].end == bars[last].end:
        return f"{' and '.join(bars)} end together"
    share = share_text(bars[first].end, bars[last].end)
    return f"{first} takes {share} of the time of {last}"


def _words(bars: dict[str, Bars]) -> str:
    told = []
    for name, one in bars.items():
        ranks = sorted({bar.event.rank for bar in one.bars})
        exposed = ", ".join(
            f"rank {rank} {seconds_text(length(one.exposed(rank)))}"
            for rank in ranks
            if one.clocked and one.exposed(rank)
        )
        told.append(f"{name}: {_length(one)}" + (f", exposed: {exposed}" if exposed else ""))
    return f"{len(bars)} timelines on one axis. {'; '.join(told)}. {_finding(bars)}."
