"""Memory: weights and KV cache of the fullest rank, by parallelism, against a card."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ringlab.draw.picture import Picture, legend, plain, sheet
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.memory import GB, Deployment

_HATCH = ("", "////")


def draw_memory(
    deployments: Mapping[str, Deployment],
    card: int,
    length: int,
    sequences: int = 1,
    *,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw what the fullest rank of each deployment holds, with a line where the card is full.

    Parameters
    ----------
    deployments : mapping of str to Deployment
        By name, in the order in which to draw them.
    card : int
        Bytes of one card: ``80 * GB``.
    length : int
        Tokens of each sequence.
    sequences : int
        Sequences in all replicas together.
    title : str, optional
        Instead of the finding that the picture states by itself: which of them fit.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        A bar of two parts for each, weights and KV cache.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not deployments:
        raise ValueError("give at least one deployment to draw, as in {'TP 8': Deployment(...)}.")
    look = theme_named(theme)
    held = {name: _fullest(one, length, sequences) for name, one in deployments.items()}
    figure = sheet(8.6, 1.5 + 0.5 * len(held), look)
    axis = figure.subplots()
    plain(axis, look, grid="x")
    end = max([1.25 * card, *(1.3 * sum(parts) for parts in held.values())]) / GB
    for place, parts in enumerate(held.values()):
        _draw_bar(axis, place, parts, card, look, end)
    axis.axvline(card / GB, color=look.ink, linestyle="--", linewidth=1.4, gid="card",
                 label=f"one card: {card / GB:g} GB")  # fmt: skip
    axis.set_yticks(range(len(held)), list(held))
    axis.set_ylim(len(held) - 0.4, -0.6)
    axis.set_xlim(0, end)
    axis.set_xlabel(f"GB on the fullest rank, {sequences} x {length:,} tokens")
    axis.set_title(title or _finding(held, card), fontsize=12, color=look.ink)
    legend(figure, look)
    return Picture(figure, _words(held, card, length, sequences))


def _fullest(deployment: Deployment, length: int, sequences: int) -> tuple[int, int]:
    """Bytes of weights and of KV cache on the rank that holds most."""
    first_replica = range(0, deployment.pp * deployment.cp * deployment.tp, deployment.tp)
    rank = max(first_replica, key=lambda r: deployment.total_bytes(r, length, sequences))
    return deployment.weight_bytes(rank), deployment.kv_bytes(rank, length, sequences)


def _draw_bar(
    axis: Axes, place: int, parts: tuple[int, int], card: int, theme: Theme, end: float
) -> None:
    left = 0.0
    for number, (name, count) in enumerate(zip(("weights", "KV cache"), parts, strict=True)):
        axis.add_patch(
            Rectangle((left, place - 0.3), count / GB, 0.6, facecolor=theme.tint(number, 0.55),
                      edgecolor=theme.ink, linewidth=0.8, hatch=_HATCH[number],
                      label=name if place == 0 else None, gid=f"memory-{place}-{number}")
        )  # fmt: skip
        left += count / GB
    total = sum(parts)
    verdict = "fits" if total <= card else f"{(total - card) / GB:.3g} GB too much"
    axis.text(max(left, card / GB) + 0.01 * end, place, f"{total / GB:.3g} GB: {verdict}",
              va="center", fontsize=8.5, color=theme.ink)  # fmt: skip


def _finding(held: dict[str, tuple[int, int]], card: int) -> str:
    fitting = [name for name, parts in held.items() if sum(parts) <= card]
    if len(fitting) == len(held):
        return f"All of them fit on cards of {card / GB:g} GB"
    if not fitting:
        return f"None of them fits on cards of {card / GB:g} GB"
    only = f"{fitting[0]} fits" if len(fitting) == 1 else f"these fit: {'; '.join(fitting)}"
    return f"On cards of {card / GB:g} GB only {only}"


def _words(held: dict[str, tuple[int, int]], card: int, length: int, sequences: int) -> str:
    told = "; ".join(
        f"{name}: weights {weights / GB:.3g} GB, KV cache {cache / GB:.3g} GB"
        for name, (weights, cache) in held.items()
    )
    served = f"{sequences} sequence{'s' * (sequences != 1)} of {length:,} tokens"
    return (
        f"Bars of what the fullest rank holds for {served}, with a line at the card's "
        f"{card / GB:g} GB. {told}. {_finding(held, card)}."
    )
