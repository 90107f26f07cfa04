"""The virtual world: ranks that are threads of this process, and take turns."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch.distributed as dist

from ringlab.timeline import Timeline
from ringlab.world.collective import Call
from ringlab.world.errors import BadCall
from ringlab.world.virtual import compiled, tables
from ringlab.world.virtual.group import VirtualGroup
from ringlab.world.virtual.lives import current_run, execute
from ringlab.world.virtual.operations import Order
from ringlab.world.virtual.run import Run


class VirtualRunner:
    """Runs functions on virtual ranks; keeps the timeline of the last run.

    Parameters
    ----------
    size : int
    order : {"stream", "host"}
        Whose rules apply: NCCL's or gloo's.
    timeout : float
        Seconds a rank may keep its turn without calling into the world.
    seed : int
        Rank r starts with its random generators seeded with ``seed + r``.
    """

    def __init__(self, size: int, *, order: Order, timeout: float, seed: int) -> None:
        self.size, self.order, self.timeout, self.seed = size, order, timeout, seed
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
        with _alone():
            run = Run(self.size, self.order, self.seed, timeout or self.timeout)
            try:
                return execute(run, fn, args, kwargs)
            finally:
                self.timeline = Timeline(self.size, run.recording.events)

    def close(self) -> None:
        """Nothing to release: ranks live only during a run."""


_lock = threading.Lock()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let runs that several threads start follow one another.

    The random generators belong to the process, so two runs at once would disturb each other.
    A run that a rank starts keeps that rank's turn, and needs no place of its own.
    """
    if current_run() is not None:
        yield
    else:
        with _lock:
            yield


def _create(options: Any, _backend_options: Any = None) -> VirtualGroup:
    """Make a sub-group: called by torch from ``new_group`` on each member."""
    run = current_run()
    if run is None:
        raise BadCall(
            f"backend {tables.BACKEND!r} works only inside World(...).run(...); start real "
            "ranks with backend 'gloo' or 'nccl'."
        )
    ranks = tuple(options.global_ranks_in_group)
    rank = ranks[options.group_rank]
    name = str(options.group_id)
    group = VirtualGroup(run, name, ranks, rank)
    run.post_collective(run.group(name, ranks), rank, Call("new_group"), []).wait()
    return group


compiled.separate_ranks()
compiled.keep_out_of_graphs(
    *(module for name, module in sys.modules.items() if name.startswith(f"{__package__}."))
)
dist.Backend.register_backend(tables.BACKEND, _create, extended_api=True, devices=["cpu"])
