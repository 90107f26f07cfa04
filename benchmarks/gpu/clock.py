"""How long work on a device takes: the clock is read when all of it is done."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from ringlab.bench.readings import Reading, Stopwatch


def finish(device: str) -> None:
    """Wait until the device has done what was asked of it."""
    if device == "cuda":
        torch.cuda.synchronize()


def reading(
    step: Callable[[], object],
    device: str,
    steps: int,
    *,
    together: bool = False,
    one_by_one: bool = False,
) -> Reading:
    """Read the mean time of some steps in a row, after one that nobody counts.

    Parameters
    ----------
    step : callable
    device : {"cuda", "cpu"}
    steps : int
        How many.
    together : bool
        Whether all ranks run this and begin together.
    one_by_one : bool
        Whether each step is over before the next is asked for, as where the next needs its
        result: latency instead of throughput.

    Returns
    -------
    Reading
        Wall time; what the host computed meanwhile is not told.
    """
    step()
    finish(device)
    if together:
        dist.barrier()
        finish(device)
    with Stopwatch() as watch:
        for _ in range(steps):
            step()
            if one_by_one:
                finish(device)
        finish(device)
    return Reading(watch.reading.wall / steps, 0.0)
