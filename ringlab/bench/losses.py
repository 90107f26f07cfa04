"""What ranks spend beyond one process on the same problem, part by part."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from ringlab.bench.parts import PARTS
from ringlab.bench.readings import WAITING, Reading

LOSSES = {part: "tails" if part == "kernel" else part for part in PARTS}
"""How the difference in each part is called.

tails
    Of the attention kernels: the tiles of all ranks take more, or less, than one call over the
    whole sequence.
merge, copies, program, transport
    As in `ringlab.bench.parts.PARTS`, less what the one process spends on the same.
"""


def losses(ours: Sequence[Reading], baseline: Sequence[Reading]) -> dict[str, float]:
    """Express the difference in every part in per cent of the baseline's CPU time.

    Parameters
    ----------
    ours, baseline : sequence of Reading
        A reading of each round, with parts.

    Returns
    -------
    dict of str to float
        The values of `LOSSES`, and `WAITING` in per cent of the baseline's wall time. Of each
        part and side the least over the rounds counts: what else a machine does only ever adds
        to a time, so that the least of several is the nearest to what the work itself takes.
    """
    mine, theirs = ({part: _least(side, part) for part in PARTS} for side in (ours, baseline))
    whole = sum(theirs.values())
    found = {name: 100 * (mine[part] - theirs[part]) / whole for part, name in LOSSES.items()}
    wall = statistics.median(reading.wall for reading in baseline)
    waiting = statistics.median(reading.parts[WAITING] for reading in ours)
    return {**found, WAITING: 100 * waiting / wall}


def ratio(found: Mapping[str, float], *, communication: bool = True) -> float:
    """CPU time of the baseline over that of the ranks, from the losses.

    Parameters
    ----------
    found : mapping of str to float
        As `losses` returns it.
    communication : bool
        False leaves out the transport: what ranks could reach if messages cost nothing.
    """
    lost = sum(found[name] for name in LOSSES.values())
    return 100 / (100 + lost - (0 if communication else found["transport"]))


def _least(readings: Sequence[Reading], part: str) -> float:
    return min(reading.parts[part] for reading in readings)
