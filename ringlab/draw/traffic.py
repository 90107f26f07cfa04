"""The traffic matrix: how many bytes went from each rank to each other."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ringlab.draw.picture import Picture, plain, sheet
from ringlab.draw.theme import Theme, ThemeName, theme_named
from ringlab.draw.units import bytes_text
from ringlab.timeline import Timeline

MOST_RANKS = 12


def draw_traffic(
    timeline: Timeline, *, title: str | None = None, theme: ThemeName = "light"
) -> Picture:
    """Draw the bytes sent over each directed edge, and those of collectives beside them.

    Parameters
    ----------
    timeline : Timeline
        Of at most 12 ranks.
    title : str, optional
        Instead of the finding that the picture states by itself.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        Rows send, columns receive. A collective has no single receiver: its bytes stand in a
        column of their own.

    Raises
    ------
    ValueError
        If there are more than 12 ranks, or nothing was sent.
    """
    world, look = timeline.world_size, theme_named(theme)
    if world > MOST_RANKS:
        raise ValueError(f"{world} ranks are too many to draw; draw a run of up to {MOST_RANKS}.")
    edges = timeline.edges()
    shared = [sum(e.bytes_out for e in timeline.of(r, "collective")) for r in range(world)]
    most = max([*edges.values(), *shared], default=0)
    if not most:
        raise ValueError("nothing was sent in this timeline; run a program on two ranks or more.")
    collectives = any(shared)
    columns = world + 1.4 * collectives
    figure = sheet(1.4 + 0.7 * columns, 1.5 + 0.52 * world, look)
    axis = figure.subplots()
    plain(axis, look)
    for source in range(world):
        for target in range(world):
            if source == target:
                axis.add_patch(_own(source, look))
            elif count := edges.get((source, target), 0):
                _draw_cell(axis, target, source, count, most, f"edge-{source}-{target}", look)
        if shared[source]:
            _draw_cell(axis, world + 0.4, source, shared[source], most,
                       f"collective-{source}", look)  # fmt: skip
    ticks = [(float(rank), f"{rank}") for rank in range(world)]
    if collectives:
        ticks.append((world + 0.4, "in\ncollectives"))
    axis.set_xticks([at for at, _ in ticks], [name for _, name in ticks])
    axis.set_yticks(range(world), [f"rank {rank}" for rank in range(world)])
    axis.set_xlim(-0.5, columns - 0.5)
    axis.set_ylim(world - 0.5, -0.5)
    axis.set_xlabel("to rank")
    axis.set_ylabel("from")
    axis.set_title(title or _finding(world, edges, collectives), fontsize=12, color=look.ink)
    return Picture(figure, _words(world, edges, shared))


def _draw_cell(axis: Axes, x: float, y: int, count: int, most: int, gid: str, theme: Theme) -> None:
    strength = 0.1 + 0.43 * count / most
    axis.add_patch(
        Rectangle((x - 0.47, y - 0.46), 0.94, 0.92, facecolor=theme.tint(0, strength),
                  edgecolor=theme.colour(0), linewidth=0.8, gid=gid)
    )  # fmt: skip
    axis.text(x, y, bytes_text(count).replace(" ", "\n"), ha="center", va="center", fontsize=8,
              color=theme.ink)  # fmt: skip


def _own(rank: int, theme: Theme) -> Rectangle:
    return Rectangle((rank - 0.47, rank - 0.46), 0.94, 0.92, facecolor="none",
                     edgecolor=theme.faint, linewidth=0.4, hatch="////", alpha=0.5)  # fmt: skip


def _finding(world: int, edges: dict[tuple[int, int], int], collectives: bool) -> str:
    used = {edge for edge, count in edges.items() if count}
    if not used:
        return "All bytes move in collectives"
    mixed = ", and collectives" if collectives else ""
    if all((target - source) % world == 1 for source, target in used):
        return f"Each rank sends to its neighbour alone{mixed}"
    return f"{len(used)} of {world * (world - 1)} edges carry messages{mixed}"


def _words(world: int, edges: dict[tuple[int, int], int], shared: list[int]) -> str:
    told = [
        f"rank {source} to rank {target} {bytes_text(count)}"
        for (source, target), count in sorted(edges.items())
        if count
    ]
    told += [
        f"rank {rank} in collectives {bytes_text(count)}"
        for rank, count in enumerate(shared)
        if count
    ]
    finding = _finding(world, edges, any(shared))
    return f"A matrix of bytes sent among {world} ranks: {'; '.join(told)}. {finding}."
