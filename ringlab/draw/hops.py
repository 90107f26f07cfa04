"""Bytes per hop: what a timeline counted beside what a formula says."""

from __future__ import annotations

from collections.abc import Sequence

from ringlab.draw.bars import draw_measured
from ringlab.draw.picture import Picture
from ringlab.draw.theme import ThemeName
from ringlab.draw.units import bytes_unit
from ringlab.timeline import Timeline


def draw_hops(
    timeline: Timeline,
    formula: Sequence[int],
    *,
    rank: int = 0,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw the bytes that one rank sent in each hop, with a mark where the formula puts them.

    Parameters
    ----------
    timeline : Timeline
    formula : sequence of int
        Bytes of each hop, for example ``ringlab.cost.ring_forward(call).hops(rank)``.
    rank : int
        Whose hops.
    title : str, optional
        Instead of the finding that the picture states by itself: whether all bars agree.
    theme : {"light", "dark"}

    Returns
    -------
    Picture

    Raises
    ------
    ValueError
        If the timeline has another number of hops than the formula, or no such rank.
    """
    sent = timeline.hops(rank)
    if len(sent) != len(formula):
        raise ValueError(
            f"rank {rank} made {len(sent)} hops and the formula has {len(formula)}; both are "
            "needed hop by hop."
        )
    scale, unit = bytes_unit(max([*sent, *formula], default=0))
    return draw_measured(
        [f"hop {number}" for number in range(1, len(sent) + 1)],
        {f"rank {rank}": sent},
        {f"rank {rank}": formula},
        unit=f"sent by rank {rank} ({unit})",
        title=title,
        divide=scale,
        theme=theme,
    )
