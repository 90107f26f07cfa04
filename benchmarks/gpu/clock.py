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


def seconds(
    step: Callable[[], object], device: str, steps: int, *, together: bool = False
) -> float:
    """Give the mean time of some steps in a row, after one that nobody counts.

    Parameters
    ----------
    step : callable
    device : {"cuda", "cpu"}
    steps : int
        How many.
    together : bool
        Whether all ranks run this and begin together.

    Returns
    -------
    float
        Seconds.
    """
    step()
    finish(device)
    if together:
        dist.barrier()
        finish(device)
    with Stopwatch() as watch:
        for _ in range(steps):
            step()
        finish(device)
    return watch.reading.wall / steps


def reading(
    step: Callable[[], object], device: str, steps: int, *, together: bool = False
) -> Reading:
    """Read the same as `Reading`; what the host computed meanwhile is not told."""
    return Reading(seconds(step, device, steps, together=together), 0.0)
