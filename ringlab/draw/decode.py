"""Decode: bytes and time per token against context length or batch, method by method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from ringlab.draw.curves import Crossing, check_series, crossings, draw_curves
from ringlab.draw.picture import Picture, legend, plain, sheet
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.draw.units import bytes_text, seconds_text

_STEPS = (10, 5, 2, 1)
"""Ticks of bytes stand this many powers of two apart: at powers of 1024, unless few would."""
_LETTER = 0.0165
"""Width of a letter of a label, as a part of the width of a panel."""


def draw_decode(
    contexts: Sequence[int],
    sent: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
    *,
    along: str = "tokens in the cache",
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw what one decoded token costs, in bytes and in time, as the context grows.

    Parameters
    ----------
    contexts : sequence of int
        Tokens in the cache, ascending; or what `along` says.
    sent : mapping of str to sequence of float
        For each method the bytes that one rank sends per token, one number a context. A method
        that sends nothing is left out.
    seconds : mapping of str to sequence of float
        The same methods, and those that send nothing: time per token.
    along : str
        What grows, a plural with its first word as the unit: ``"sequences in the batch"``.
    title : str, optional
        Instead of the finding that the picture states by itself: which is fastest where.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        Two panels, all axes logarithmic. A ring marks each point where another method becomes
        the cheapest.

    Raises
    ------
    ValueError
        If a method has bytes and no time, none has bytes, or values cannot be shown.
    """
    if not sent or not set(sent) <= set(seconds):
        raise ValueError(f"methods differ: bytes of {list(sent)}, seconds of {list(seconds)}.")
    check_series(contexts, sent, "numbers of bytes")
    check_series(contexts, seconds, "times")
    look = theme_named(theme)
    figure = sheet(9.6, 4.2, look)
    left, right = figure.subplots(1, 2)
    for axis, series, what in ((left, sent, "bytes"), (right, seconds, "time")):
        points = {name: list(zip(contexts, ys, strict=True)) for name, ys in series.items()}
        draw_curves(axis, points, look, list(seconds))
        _scales(axis, contexts, along, look)
        axis.set_yscale("log", base=2 if what == "bytes" else 10)
        axis.minorticks_off()
        _mark(axis, crossings(contexts, series), series, look)
        axis.set_title(f"{what} per token", fontsize=10.5, color=look.ink)
    left.set_yticks(_byte_ticks(*left.get_ylim()))
    left.yaxis.set_major_formatter(lambda value, _: bytes_text(value))
    right.set_yticks(_time_ticks(*right.get_ylim()))
    right.yaxis.set_major_formatter(lambda value, _: seconds_text(value))
    legend(figure, look, right.lines[: len(seconds)])
    unit = along.split()[0]
    figure.suptitle(title or _finding(contexts, seconds, unit), fontsize=12.5, color=look.ink)
    return Picture(figure, _words(contexts, sent, seconds, unit))


def _scales(axis: Axes, contexts: Sequence[int], along: str, theme: Theme) -> None:
    plain(axis, theme, grid="both")
    axis.set_xscale("log", base=2)
    axis.set_xticks(contexts[:: max(1, len(contexts) // 5)])
    axis.xaxis.set_major_formatter(lambda tokens, _: tokens_text(tokens))
    axis.set_xlabel(along)


def _byte_ticks(low: float, high: float) -> list[float]:
    """Powers of two inside the limits, of 1024 if there are three of them or more."""
    for step in _STEPS:
        first, last = math.ceil(math.log2(low) / step), math.floor(math.log2(high) / step)
        if last - first >= 2:
            break
    return [2.0 ** (step * power) for power in range(first, last + 1)]


def _time_ticks(low: float, high: float) -> list[float]:
    """Powers of ten inside the limits; if there are fewer than two, 2 and 5 times them as well."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for digits in ((1,), (1, 2, 5)):
        ticks = [digit * 10.0**power for power in powers for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 2:
            break
    return ticks


def _mark(
    axis: Axes, found: list[Crossing], series: Mapping[str, Sequence[float]], theme: Theme
) -> None:
    """Ring the crossings, and name them above all curves, where no curve or tick can be."""
    values = [value for ys in series.values() for value in ys]
    low, high = math.log(min(values)), math.log(max(values))
    part = 0.92 - 0.09 * len(found)  # of the height, for the curves and a margin on each side
    span = max(high - low, math.log(4)) * 1.1 / part
    middle = (low + high) / 2
    bottom = middle - 0.5 * part * span
    axis.set_ylim(math.exp(bottom), math.exp(bottom + span))
    left, right = (math.log(limit) for limit in axis.get_xlim())
    for number, crossing in enumerate(found):
        axis.plot([crossing.x], [crossing.y], "o", markersize=15, markerfacecolor="none",
                  markeredgecolor=theme.alarm, markeredgewidth=1.8,
                  gid=f"crossing-{number}")  # fmt: skip
        axis.axvline(crossing.x, color=theme.alarm, linewidth=0.9, linestyle=":")
        label = f"{crossing.after} from {tokens_text(crossing.x)} on"
        wide = len(label) * _LETTER
        start = (math.log(crossing.x) - left) / (right - left) + 0.01
        axis.text(min(start, max(0.01, 0.99 - wide)), 0.98 - 0.09 * number, label, fontsize=8.5,
                  color=theme.ink, va="top", transform=axis.transAxes, gid=f"turn-{number}",
                  bbox={"facecolor": theme.panel, "edgecolor": "none", "pad": 1})  # fmt: skip


def tokens_text(tokens: float) -> str:
    """A number of tokens for a person: ``131072`` is ``128K``."""
    for size, unit in ((1024**2, "M"), (1024, "K")):
        if tokens >= size:
            return f"{tokens / size:.3g}{unit}"
    return f"{tokens:.3g}"


def _finding(contexts: Sequence[int], seconds: Mapping[str, Sequence[float]], unit: str) -> str:
    found = crossings(contexts, seconds)
    first = min(seconds, key=lambda name: tuple(seconds[name]))  # of equals, the lower later on
    if not found:
        return f"{first} is the fastest throughout"
    turns = ", ".join(f"{c.after} from {tokens_text(c.x)} {unit} on" for c in found)
    return f"Fastest: {first}, then {turns}"


def _words(
    contexts: Sequence[int],
    sent: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
    unit: str,
) -> str:
    told = "; ".join(
        f"{name} from {_bytes(sent, name, 0)} and {seconds_text(seconds[name][0])} to "
        f"{_bytes(sent, name, -1)} and {seconds_text(seconds[name][-1])}"
        for name in seconds
    )
    span = f"{tokens_text(contexts[0])} to {tokens_text(contexts[-1])} {unit}"
    return f"Cost of one decoded token, {span}. {told}. {_finding(contexts, seconds, unit)}."


def _bytes(sent: Mapping[str, Sequence[float]], name: str, place: int) -> str:
    return bytes_text(sent[name][place]) if name in sent else "nothing sent"
