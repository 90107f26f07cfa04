"""The ring as a strip: one row a rank, one column a step, for print."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from ringlab.draw.picture import Picture, settle, sheet
from ringlab.draw.ring_steps import Send, checked_steps, ring_finding, ring_words
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.draw.units import bytes_text
from ringlab.timeline import Timeline

# Of a box, where columns are 1.9 apart and rows 1.
_WIDE, _HIGH, _APART = 0.9, 0.62, 1.9


def draw_ring_strip(
    timeline: Timeline, *, title: str | None = None, theme: ThemeName = "light"
) -> Picture:
    """Draw all steps of a ring in one strip: what each rank holds, and how it travels.

    Parameters
    ----------
    timeline : Timeline
        As for `draw_ring`.
    title : str, optional
        Instead of the finding that the picture states by itself.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        One arrow for each send in the timeline, from the sender's row to the receiver's.

    Raises
    ------
    ValueError
        If there are more than 12 ranks, or no message.
    """
    steps, look = checked_steps(timeline), theme_named(theme)
    world = timeline.world_size
    figure = sheet(1.3 + 1.15 * len(steps), 1.3 + 0.46 * world, look)
    axis = figure.subplots()
    axis.set_axis_off()
    for number, (held, sends) in enumerate(steps):
        x = number * _APART
        axis.text(x, -0.95, f"step {number}", ha="center", fontsize=9.5, color=look.ink)
        for rank, block in enumerate(held):
            _draw_box(axis, x, rank, block, look)
        for send in sends:
            _draw_send(axis, x, send, held[send[0]], look)
        if sends:
            axis.text(x + _APART / 2, world - 0.15, _sizes(sends), ha="center", va="top",
                      fontsize=8, color=look.ink)  # fmt: skip
    for rank in range(world):
        axis.text(-0.62, rank, f"rank {rank}", ha="right", va="center", fontsize=9, color=look.ink)
    axis.set_xlim(-1.5, (len(steps) - 1) * _APART + 0.6)
    axis.set_ylim(world + 0.25, -1.3)
    settle(axis)
    figure.suptitle(title or ring_finding(timeline, steps), color=look.ink, fontsize=12)
    return Picture(figure, ring_words(timeline, steps))


def _draw_box(axis: Axes, x: float, rank: int, block: int, theme: Theme) -> None:
    axis.add_patch(
        Rectangle((x - _WIDE / 2, rank - _HIGH / 2), _WIDE, _HIGH, facecolor=theme.tint(block),
                  edgecolor=theme.colour(block), linewidth=1.4, hatch=theme.hatch(block))
    )  # fmt: skip
    axis.text(x, rank, f"KV {block}", ha="center", va="center", fontsize=9, color=theme.ink)


def _draw_send(axis: Axes, x: float, send: Send, block: int, theme: Theme) -> None:
    source, target, _ = send
    start, end = (x + _WIDE / 2, source), (x + _APART - _WIDE / 2, target)
    axis.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, linewidth=1.4,
                        color=theme.colour(block), shrinkA=1, shrinkB=1,
                        gid=f"send-{source}-{target}")
    )  # fmt: skip


def _sizes(sends: list[Send]) -> str:
    sizes = sorted({count for _, _, count in sends})
    if len(sizes) == 1:
        return f"{len(sends)} messages\n{bytes_text(sizes[0])} each"
    return f"{len(sends)} messages\n{bytes_text(sizes[0])} to {bytes_text(sizes[-1])}"
