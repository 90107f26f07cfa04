"""Decode: bytes and time per token against context length, method by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from ringlab.draw.curves import Crossing, check_series, crossings, draw_curves
from ringlab.draw.picture import Picture, legend, plain, sheet
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.draw.units import bytes_text, seconds_text


def draw_decode(
    contexts: Sequence[int],
    sent: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
    *,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw what one decoded token costs, in bytes and in time, as the context grows.

    Parameters
    ----------
    contexts : sequence of int
        Tokens in the cache, ascending.
    sent : mapping of str to sequence of float
        For each method the bytes that one rank sends per token, one number a context.
    seconds : mapping of str to sequence of float
        The same methods: time per token.
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
        If the methods of the two differ, or values cannot be shown.
    """
    if list(sent) != list(seconds):
        raise ValueError(f"methods differ: bytes of {list(sent)}, seconds of {list(seconds)}.")
    check_series(contexts, sent, "numbers of bytes")
    check_series(contexts, seconds, "times")
    look = theme_named(theme)
    figure = sheet(9.6, 4.2, look)
    left, right = figure.subplots(1, 2)
    for axis, series, what in ((left, sent, "bytes"), (right, seconds, "time")):
        points = {name: list(zip(contexts, ys, strict=True)) for name, ys in series.items()}
        draw_curves(axis, points, look)
        _mark(axis, crossings(contexts, series), look)
        axis.set_yscale("log", base=2 if what == "bytes" else 10)
        _scales(axis, contexts, look)
        axis.set_title(f"{what} per token", fontsize=10.5, color=look.ink)
        axis.set_ylim(top=3 * max(max(ys) for ys in series.values()))
    left.yaxis.set_major_formatter(lambda value, _: bytes_text(value))
    right.yaxis.set_major_formatter(lambda value, _: seconds_text(value))
    legend(figure, look, left.lines[: len(sent)])
    figure.suptitle(title or _finding(contexts, seconds), fontsize=12.5, color=look.ink)
    return Picture(figure, _words(contexts, sent, seconds))


def _scales(axis: Axes, contexts: Sequence[int], theme: Theme) -> None:
    plain(axis, theme, grid="both")
    axis.set_xscale("log", base=2)
    axis.minorticks_off()
    axis.set_xticks(contexts[:: max(1, len(contexts) // 5)])
    axis.xaxis.set_major_formatter(lambda tokens, _: tokens_text(tokens))
    axis.set_xlabel("tokens in the cache")


def _mark(axis: Axes, found: list[Crossing], theme: Theme) -> None:
    for number, crossing in enumerate(found):
        axis.plot([crossing.x], [crossing.y], "o", markersize=15, markerfacecolor="none",
                  markeredgecolor=theme.alarm, markeredgewidth=1.8,
                  gid=f"crossing-{number}")  # fmt: skip
        axis.axvline(crossing.x, color=theme.alarm, linewidth=0.9, linestyle=":")
        axis.text(crossing.x, 0.965 - 0.1 * number, f" {crossing.after} from "
                  f"{tokens_text(crossing.x)} on", fontsize=8.5, color=theme.ink, va="top",
                  transform=axis.get_xaxis_transform())  # fmt: skip


def tokens_text(tokens: float) -> str:
    """A number of tokens for a person: ``131072`` is ``128K``."""
    for size, unit in ((1024**2, "M"), (1024, "K")):
        if tokens >= size:
            return f"{tokens / size:.3g}{unit}"
    return f"{tokens:.3g}"


def _finding(contexts: Sequence[int], seconds: Mapping[str, Sequence[float]]) -> str:
    found = crossings(contexts, seconds)
    first = min(seconds, key=lambda name: seconds[name][0])
    if not found:
        return f"{first} is the fastest at every length"
    turns = ", ".join(f"{c.after} from {tokens_text(c.x)} tokens on" for c in found)
    return f"Fastest: {first}, then {turns}"


def _words(
    contexts: Sequence[int],
    sent: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
) -> str:
    told = "; ".join(
        f"{name} from {bytes_text(sent[name][0])} and {seconds_text(seconds[name][0])} to "
        f"{bytes_text(sent[name][-1])} and {seconds_text(seconds[name][-1])}"
        for name in sent
    )
    span = f"{tokens_text(contexts[0])} to {tokens_text(contexts[-1])} tokens"
    return f"Cost of one decoded token, {span}. {told}. {_finding(contexts, seconds)}."
