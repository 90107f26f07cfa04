"""The work map: which rank computes which pairs, in which step, and how evenly."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from ringlab.draw.pairs import Corner, Region, regions, stretches
from ringlab.draw.picture import Picture, legend, plain, settle, sheet
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.draw.work_bars import draw_rank_work, draw_step_work
from ringlab.layout import Layout
from ringlab.layout.tiles import work

MOST_RANKS = 8
_HATCH = {"full": "", "diagonal": "////"}


def draw_work_map(
    layout: Layout,
    world_size: int,
    length: int,
    *,
    causal: bool = True,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw the L × L square of (query, key) pairs, and beside it the work of ranks and steps.

    Parameters
    ----------
    layout : Layout
    world_size : int
        At most 8.
    length : int
        Tokens; a short sequence (64 tokens) shows the same as a long one.
    causal : bool
    title : str, optional
        Instead of the finding that the picture states by itself.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        Rows are queries, columns keys, both by position. Each computed pair is covered by one
        shape: coloured by the rank that computes it, hatched on the diagonal, and labelled with
        the step of a ring in which the rank has those keys. What is left empty is skipped.

    Raises
    ------
    ValueError
        If there are more than 8 ranks, or the layout cuts the sequence into too many pieces.
    """
    if not 1 <= world_size <= MOST_RANKS:
        raise ValueError(f"{world_size} ranks cannot be drawn; draw a map of 1 to {MOST_RANKS}.")
    look = theme_named(theme)
    table = work(layout, world_size, length, causal=causal)
    figure = sheet(9.6, 5.2, look)
    axes = figure.subplot_mosaic(
        [["square", "ranks"], ["square", "steps"]],
        width_ratios=(1.2, 1),
        height_ratios=(world_size + 1.5, 3.2),
    )
    found = draw_square(axes["square"], layout, world_size, length, causal=causal, theme=look)
    draw_rank_work(axes["ranks"], table, look)
    draw_step_work(axes["steps"], table, look)
    explain_tiles(figure, found, look)
    name = type(layout).__name__
    figure.suptitle(title or f"{name}: {_finding(table)}", fontsize=12.5, color=look.ink)
    return Picture(figure, _words(name, length, table, found))


def draw_square(
    axis: Axes, layout: Layout, world_size: int, length: int, *, causal: bool, theme: Theme
) -> list[Region]:
    """Draw the square of pairs on an axis, and give what was drawn."""
    found = regions(layout, world_size, length, causal=causal)
    for region in found:
        _draw_region(axis, region, length, theme)
    settle(axis)
    _label_square(axis, layout, world_size, length, theme)
    if causal:
        axis.text(0.72 * length, 0.24 * length, "skipped:\nkeys after the query", ha="center",
                  va="center", fontsize=9, color=theme.ink)  # fmt: skip
    return found


def _draw_region(axis: Axes, region: Region, length: int, theme: Theme) -> None:
    paths = [Path([*shape, shape[0]], closed=True) for shape in region.shapes]
    axis.add_patch(
        PathPatch(Path.make_compound_path(*paths), facecolor=theme.tint(region.rank, 0.4),
                  edgecolor=theme.colour(region.rank), linewidth=0.6, hatch=_HATCH[region.kind],
                  gid=f"pairs-{region.rank}-{region.source}-{region.kind}")
    )  # fmt: skip
    for shape in region.shapes:
        x, y, wide, high = _middle(shape)
        if min(wide, high) >= length / 17:
            axis.text(x, y, f"{region.step}", ha="center", va="center", color=theme.ink,
                      fontsize=8.5, bbox={"facecolor": theme.panel, "edgecolor": "none",
                                          "pad": 0.8, "alpha": 0.75})  # fmt: skip


def _middle(shape: tuple[Corner, ...]) -> tuple[float, float, float, float]:
    """Where a label goes, and the size of the shape's frame; in a staircase, low and left."""
    keys, queries = [key for key, _ in shape], [query for _, query in shape]
    wide, high = max(keys) - min(keys), max(queries) - min(queries)
    across, down = (0.5, 0.5) if len(shape) == 4 else (0.34, 0.66)
    return min(keys) + across * wide, min(queries) + down * high, wide, high


def explain_tiles(figure: Figure, found: list[Region], theme: Theme) -> None:
    """Put the key of full and diagonal tiles below the figure, if there are both."""
    names = {"full": "full tile", "diagonal": "diagonal tile"}
    kinds = [kind for kind in names if any(region.kind == kind for region in found)]
    if kinds == ["full"]:  # nothing to tell apart
        return
    legend(figure, theme, [
        Patch(facecolor=theme.tint(7), edgecolor=theme.ink, hatch=_HATCH[kind], label=names[kind])
        for kind in kinds
    ])  # fmt: skip


def _label_square(axis: Axes, layout: Layout, world_size: int, length: int, theme: Theme) -> None:
    plain(axis, theme)
    axis.set_xlim(0, length)
    axis.set_ylim(length, 0)
    axis.set_aspect("equal")
    pieces = sorted(
        (piece.start, piece.stop, rank)
        for rank in range(world_size)
        for piece in stretches(layout.positions(rank, world_size, length).tolist())
    )
    places = [(start + stop) / 2 for start, stop, _ in pieces]
    axis.set_xlabel("key position, by the rank that owns it (steps stand in the tiles)")
    if len(pieces) <= 2 * MOST_RANKS:
        axis.set_xticks(places, [f"{rank}" for _, _, rank in pieces])
        axis.set_yticks(places, [f"rank {rank}" for _, _, rank in pieces])
        return
    # Too many pieces to name each: the first ones show the pattern.
    axis.set_xlabel("key position")
    axis.set_yticks(places[:world_size], [f"rank {rank}" for _, _, rank in pieces[:world_size]],
                    fontsize=6.5)  # fmt: skip
    axis.set_ylabel("query position; the order of ranks repeats")


def _finding(table: tuple[tuple[int, ...], ...]) -> str:
    totals = [sum(row) for row in table]
    mean = sum(totals) / len(totals)
    if max(totals) <= 1.005 * mean:
        return "every rank computes the same number of pairs"
    return f"the busiest rank computes {max(totals) / mean:.2f} times the mean"


def _words(name: str, length: int, table: tuple[tuple[int, ...], ...], found: list[Region]) -> str:
    world = len(table)
    computed = {(region.rank, region.source) for region in found}
    skipped = world * world - len(computed)
    told = ", ".join(f"rank {rank} {sum(row)}" for rank, row in enumerate(table))
    return (
        f"The square of {length} queries by {length} keys under {name} on {world} ranks. "
        f"Pairs computed: {told}. {skipped} of {world * world} blocks are skipped whole. "
        f"{_finding(table).capitalize()}."
    )
