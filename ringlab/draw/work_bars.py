"""Work per rank and per step, as bars; the part of the work map beside the square."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ringlab.draw.picture import plain, settle
from ringlab.draw.theme import Theme

# Neighbouring steps differ, and neither looks like the hatch of a diagonal tile.
_HATCH = ("", "...")


def draw_rank_work(axis: Axes, table: Sequence[Sequence[int]], theme: Theme) -> None:
    """Draw for each rank a bar of its pairs, cut into the steps of a ring.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    table : sequence of sequence of int
        ``table[rank][source]`` pairs, as `ringlab.layout.tiles.work` gives them.
    theme : Theme
    """
    world = len(table)
    totals = [sum(row) for row in table]
    mean, most = sum(totals) / world, max(totals)
    plain(axis, theme, grid="x")
    for rank in range(world):
        left = 0
        for step in range(world):
            count = table[rank][(rank - step) % world]
            if count:
                axis.add_patch(_piece(rank, step, left, count, theme))
            if count > 0.06 * most:
                axis.text(left + count / 2, rank, f"{step}", ha="center", va="center",
                          fontsize=8.5, color=theme.ink, bbox={"facecolor": theme.panel,
                          "edgecolor": "none", "pad": 0.8, "alpha": 0.75})  # fmt: skip
            left += count
        times = f"{totals[rank] / mean if mean else 0:.2f} \N{MULTIPLICATION SIGN} mean"
        axis.text(left + 0.02 * most, rank, times, va="center", fontsize=8.5, color=theme.ink,
                  bbox={"facecolor": theme.panel, "edgecolor": "none", "pad": 0.8})  # fmt: skip
    settle(axis)
    axis.axvline(mean, color=theme.ink, linestyle="--", linewidth=1.1, zorder=0.9)
    axis.set_xlim(0, 1.32 * max(most, 1))
    axis.set_ylim(world - 0.45, -0.55)
    axis.set_yticks(range(world), [f"rank {rank}" for rank in range(world)])
    axis.set_xlabel("pairs computed, cut into steps")


def _piece(rank: int, step: int, left: int, count: int, theme: Theme) -> Rectangle:
    return Rectangle((left, rank - 0.32), count, 0.64, facecolor=theme.tint(rank, 0.4),
                     edgecolor=theme.colour(rank), linewidth=0.8,
                     hatch=_HATCH[step % 2], gid=f"work-{rank}-{step}")  # fmt: skip


def draw_step_work(axis: Axes, table: Sequence[Sequence[int]], theme: Theme) -> None:
    """Draw for each step the pairs of its busiest rank, for which all others wait.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    table : sequence of sequence of int
        As for `draw_rank_work`.
    theme : Theme
    """
    world = len(table)
    plain(axis, theme, grid="y")
    most = 0.0
    for step in range(world):
        counts = [table[rank][(rank - step) % world] for rank in range(world)]
        mean = sum(counts) / world
        most = max(most, *counts)
        axis.add_patch(
            Rectangle((step - 0.36, 0), 0.72, max(counts), facecolor=theme.tint(7),
                      edgecolor=theme.ink, linewidth=0.8, hatch=_HATCH[step % 2],
                      gid=f"step-{step}")
        )  # fmt: skip
        axis.plot([step - 0.36, step + 0.36], [mean, mean], color=theme.ink, linestyle="--",
                  linewidth=1.6, gid=f"mean-{step}")  # fmt: skip
    axis.set_xlim(-0.6, world - 0.4)
    axis.set_ylim(0, 1.1 * max(most, 1))
    axis.set_xticks(range(world), [f"step {step}" for step in range(world)])
    axis.set_title("busiest rank of each step; dashed: the mean", fontsize=9, color=theme.ink)
