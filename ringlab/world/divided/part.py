"""The process of one part: it runs its ranks, and hears of the others by letters."""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Sequence
from multiprocessing.connection import Connection
from typing import NoReturn

import torch

from ringlab.world.divided.messages import Assignment, Done, GivenUp, Idle
from ringlab.world.errors import WorldError
from ringlab.world.processes import orphans, pickling, surroundings
from ringlab.world.virtual.elsewhere import Letter, Undividable
from ringlab.world.virtual.lives import execute
from ringlab.world.virtual.one_core import stay_on
from ringlab.world.virtual.operations import Operation
from ringlab.world.virtual.run import Run

MOMENT = 0.5
"""Seconds to wait for news before looking whether the run has failed meanwhile."""


class Outpost:
    """The way from a part to the ranks of the other parts: an `Elsewhere`.

    Parameters
    ----------
    here : collection of int
        The ranks of this part.
    link : Connection
        To the process that forwards letters.
    """

    def __init__(self, here: Collection[int], link: Connection) -> None:
        self.here: Collection[int] = frozenset(here)
        self._link = link
        self._heard = 0
        self._said_idle = False

    def tell(self, op: Operation) -> None:
        """Write to the other end of a message, unless it lives here."""
        if op.peer not in self.here:
            self._link.send(Letter.about(op))

    def hear(self) -> Sequence[Letter]:
        """Wait for letters, a moment at most; say once that nothing goes on without them."""
        if not self._said_idle:
            self._link.send(Idle(self._heard))
            self._said_idle = True
        letters: list[Letter] = []
        while self._link.poll(0.0 if letters else MOMENT):
            try:
                letters.append(self._link.recv())
            except EOFError:
                raise Undividable("the process that started this part is gone") from None
            self._said_idle = False
        self._heard += len(letters)
        return letters


def serve(fd: int, parent: int) -> NoReturn:
    """Live as a part, for the process `parent` at the other end of a socket. Does not return."""
    orphans.die_with_parent(parent)
    link = Connection(fd)
    try:
        link.send(_work(link.recv(), link))
    finally:
        os._exit(0)


def _work(given: Assignment, link: Connection) -> Done | GivenUp:
    torch.set_num_threads(1)
    gc.freeze()  # what has been imported is looked at no more
    torch.set_default_dtype(given.dtype)
    stay_on(given.core)
    pickling.remember(given.sources)
    run = Run(given.size, given.order, given.seed, given.timeout, Outpost(given.here, link))
    try:
        function, args, kwargs = pickling.loads(given.program)
        with surroundings.main_module_of(function), given.ambient.applied():
            results = execute(run, function, args, kwargs)
        own = [results[rank] for rank in given.here]
        return Done(pickling.dumps(own)[0], run.recording.events)
    except WorldError as error:
        return GivenUp(str(error))
    except Exception as error:
        return GivenUp(f"{type(error).__name__}: {error}")
