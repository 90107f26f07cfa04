"""`DividedRunner`: a virtual world over several processes, or over one where that cannot be."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from ringlab.timeline import Timeline
from ringlab.timeline.log import EventLog
from ringlab.world.ambient import Ambient
from ringlab.world.divided.messages import Assignment
from ringlab.world.divided.office import cores, run_parts
from ringlab.world.processes import pickling
from ringlab.world.virtual import VirtualRunner
from ringlab.world.virtual.elsewhere import Undividable
from ringlab.world.virtual.lives import current_run
from ringlab.world.virtual.operations import Order

RUNS = 4
"""How many runs of neighbours a part gets."""


class DividedRunner:
    """Runs functions on virtual ranks in several processes; keeps the timeline of the last run.

    What a rank does and leaves behind is the same as in one process, event by event; only the
    order of events of different ranks is another. A run that fails, or that cannot be divided, is
    done again in this process, which reports what is wrong.

    Parameters
    ----------
    size, order, timeout, seed
        As in `VirtualRunner`.
    processes : int
        From 1 to `size`.
    """

    def __init__(
        self, size: int, *, order: Order, timeout: float, seed: int, processes: int
    ) -> None:
        self._alone = VirtualRunner(size, order=order, timeout=timeout, seed=seed)
        self._processes = processes
        self.timeline = Timeline(size)

    def run(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        timeout: float | None = None,
    ) -> list[Any]:
        """Run ``fn(*args, **kwargs)`` on every rank."""
        try:
            results, events = self._divided(fn, args, kwargs, timeout)
        except Undividable as reason:
            try:
                results = self._alone.run(fn, args, kwargs, timeout=timeout)
            finally:
                self.timeline = self._alone.timeline
            warnings.warn(
                f"the ranks ran in one process, not in {self._processes}: {reason}.", stacklevel=3
            )
            return results
        self.timeline = Timeline(self._alone.size, events)
        return results

    def close(self) -> None:
        """Nothing to release: parts live only during a run."""

    def _divided(
        self, fn: Any, args: Any, kwargs: Any, timeout: float | None
    ) -> tuple[list[Any], EventLog]:
        alone = self._alone
        if os.name != "posix":
            raise Undividable("this system cannot hand an open connection to a process")
        if current_run() is not None:
            raise Undividable("this run is part of another one")
        try:
            program, sources = pickling.dumps((fn, args, kwargs))
        except TypeError as error:
            raise Undividable(f"the program {error}") from None
        dealt = shares(alone.size, self._processes)
        ambient, dtype, owned = Ambient(), torch.get_default_dtype(), cores()
        done = run_parts(
            [
                Assignment(
                    here, alone.size, alone.order, alone.seed, timeout or alone.timeout,
                    owned[number % len(owned)], ambient, dtype, sources, program
                )
                for number, here in enumerate(dealt)
            ]
        )  # fmt: skip
        results = {
            rank: result
            for share, part in zip(dealt, done, strict=True)
            for rank, result in zip(share, pickling.loads(part.results), strict=True)
        }
        return [results[rank] for rank in range(alone.size)], EventLog.joined(
            [part.events for part in done]
        )


def shares(size: int, parts: int) -> list[tuple[int, ...]]:
    """Deal ranks out to parts, in a few runs of neighbours each, to and fro.

    Neighbours talk to each other most, and what a rank does often grows with its number, as in a
    causal ring over contiguous shards.
    """
    runs = RUNS * parts if size >= RUNS * parts else parts
    bounds = [size * run // runs for run in range(runs + 1)]
    dealt: list[list[int]] = [[] for _ in range(parts)]
    for run, (low, high) in enumerate(pairwise(bounds)):
        turn, place = divmod(run, parts)
        dealt[parts - 1 - place if turn % 2 else place].extend(range(low, high))
    return [tuple(share) for share in dealt]
