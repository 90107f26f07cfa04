"""Work maps of several layouts side by side, and below them the work of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringlab.draw.picture import Picture, sheet
from ringlab.draw.theme import ThemeName, theme_named
from ringlab.draw.units import share_text
from ringlab.draw.work_bars import draw_step_work
from ringlab.draw.work_map import MOST_RANKS, draw_square, explain_tiles
from ringlab.layout import Layout
from ringlab.layout.tiles import work

MOST_LAYOUTS = 4


def draw_work_maps(
    layouts: Sequence[Layout],
    world_size: int,
    length: int,
    *,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw causal work maps side by side; the bars of their steps have one scale.

    Parameters
    ----------
    layouts : sequence of Layout
        2 to 4 of them.
    world_size : int
        At most 8.
    length : int
        Tokens; with 4 a rank each pair is a cell with its step.
    title : str, optional
        Instead of the finding that the picture states by itself: whose steps are shortest.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        The squares are as in `draw_work_map`. Below each stands, for every step of a ring, the
        work of the busiest rank.

    Raises
    ------
    ValueError
        If there are too few or too many layouts or ranks, or too many pieces.
    """
    if not 2 <= len(layouts) <= MOST_LAYOUTS:
        raise ValueError(f"{len(layouts)} layouts; give 2 to {MOST_LAYOUTS} to compare.")
    if not 1 <= world_size <= MOST_RANKS:
        raise ValueError(f"{world_size} ranks cannot be drawn; draw maps of 1 to {MOST_RANKS}.")
    look = theme_named(theme)
    figure = sheet(3.5 * len(layouts), 5.6, look)
    squares, steps = figure.subplots(2, len(layouts), height_ratios=(3.3, 1.2))
    counted, found = [], []
    for layout, square, below in zip(layouts, squares, steps, strict=True):
        table = work(layout, world_size, length, causal=True)
        counted.append(_count(layout, table))
        found += draw_square(square, layout, world_size, length, causal=True, theme=look)
        square.set_xlabel("keys, by the rank that owns them")
        square.set_title(counted[-1].told, fontsize=10, color=look.ink)
        draw_step_work(below, table, look)
    top = max(below.get_ylim()[1] for below in steps)
    for below in steps:
        below.set_ylim(0, top)
        below.title.set_fontsize(8)
    explain_tiles(figure, found, look)
    figure.suptitle(title or _finding(counted), fontsize=12.5, color=look.ink)
    return Picture(figure, _words(counted, length, world_size))


class _Counted(NamedTuple):
    name: str
    of_ranks: tuple[int, ...]
    of_steps: tuple[int, ...]

    @property
    def told(self) -> str:
        ratio = max(self.of_ranks) * len(self.of_ranks) / max(sum(self.of_ranks), 1)
        return f"{self.name}: busiest rank {ratio:.2f} \N{MULTIPLICATION SIGN} mean"


def _count(layout: Layout, table: Sequence[Sequence[int]]) -> _Counted:
    ranks = range(len(table))
    of_steps = tuple(max(table[r][(r - step) % len(table)] for r in ranks) for step in ranks)
    return _Counted(type(layout).__name__, tuple(map(sum, table)), of_steps)


def _finding(counted: Sequence[_Counted]) -> str:
    first, last = (pick(counted, key=lambda c: sum(c.of_steps)) for pick in (min, max))
    if sum(first.of_steps) == sum(last.of_steps):
        return "The steps add up to the same"
    share = share_text(sum(first.of_steps), sum(last.of_steps))
    return f"The steps of {first.name} add up to {share} of those of {last.name}"


def _words(counted: Sequence[_Counted], length: int, world_size: int) -> str:
    told = "; ".join(
        f"{each.name}: ranks {list(each.of_ranks)}, busiest of each step {list(each.of_steps)}"
        for each in counted
    )
    return (
        f"Squares of {length} queries by {length} keys on {world_size} ranks, pairs computed: "
        f"{told}. {_finding(counted)}."
    )
