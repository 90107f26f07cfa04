"""The threads of a run: started, watched, and unwound when the run fails."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ringlab.world.ambient import Ambient, RandomState
from ringlab.world.virtual.one_core import last_core, stay_on, yield_rarely
from ringlab.world.virtual.scheduler import Scheduler
from ringlab.world.virtual.turns import Abandoned, Rank, State, raise_in_thread

MANY = 4
"""More ranks than this share a core, where each computes on one thread: only one runs at a time."""

GRACE = 1.5
"""Seconds that the ranks of a failed run get to unwind, before they are given up."""


class TurnExpired(Exception):
    """A rank kept the turn beyond the deadline.

    Parameters
    ----------
    rank : int
    where : list of str
        One line a rank: where it stands.
    """

    def __init__(self, rank: int, where: list[str]) -> None:
        self.rank, self.where = rank, where
        super().__init__(rank)


@dataclass(frozen=True)
class Life:
    """What a rank does, as functions of its number that are called in its thread.

    Attributes
    ----------
    body : callable
        The program.
    leave : callable
        Called after `body`, however that ended; perhaps twice.
    failed : callable
        Turns what `body` raised into the error to report.
    """

    body: Callable[[int], Any]
    leave: Callable[[int], None]
    failed: Callable[[int, BaseException], Exception]


class Crew:
    """Runs one function on every rank, each in a thread of its own.

    Parameters
    ----------
    scheduler : Scheduler
    life : Life
    timeout : float
        Seconds that a rank may keep the turn without calling into the world.
    """

    def __init__(self, scheduler: Scheduler, life: Life, timeout: float) -> None:
        self._scheduler, self._life, self._timeout = scheduler, life, timeout

    def run(self) -> list[Any]:
        """Run the life on every rank and return the results in rank order.

        Raises
        ------
        Exception
            The first error of the run.
        TurnExpired
            If a rank kept the turn beyond the deadline.
        KeyboardInterrupt
            If the caller is interrupted; the ranks are unwound first.
        """
        scheduler, mine = self._scheduler, RandomState(None)
        try:
            self._start()
            scheduler.hand_over(None, scheduler.next(len(scheduler.ranks) - 1))
            self._watch()
        except BaseException as interruption:
            scheduler.failed(interruption)
            self._unwind()
            raise
        finally:
            self._join()
            mine.restore()
        if scheduler.error is not None:
            raise scheduler.error
        return [rank.result for rank in scheduler.ranks]

    def _start(self) -> None:
        ambient, context = Ambient(), contextvars.copy_context()
        core = last_core() if self._share_a_core() else None
        for rank in self._scheduler.ranks:
            if rank.state is State.DONE:  # it lives elsewhere
                continue
            rank.thread = threading.Thread(
                target=context.copy().run,
                args=(self._main, rank, ambient, core),
                name=f"ringlab-rank-{rank.number}",
                daemon=True,
            )
            rank.thread.start()

    def _share_a_core(self) -> bool:
        return len(self._scheduler.ranks) > MANY and torch.get_num_threads() == 1

    # ---- in the thread of a rank -------------------------------------------------------

    def _main(self, rank: Rank, ambient: Ambient, core: int | None) -> None:
        stay_on(core)
        yield_rarely()
        with contextlib.suppress(Abandoned):
            self._scheduler.take(rank)
            if self._scheduler.error is None:
                self._live(rank, ambient)
        ended = False
        while not ended:  # an exception that unwinds may come late, after the program is over
            with contextlib.suppress(Abandoned):
                self._life.leave(rank.number)
                self._scheduler.left(rank)
                ended = True

    def _live(self, rank: Rank, ambient: Ambient) -> None:
        scheduler = self._scheduler
        try:
            with ambient.applied():
                rank.result = self._life.body(rank.number)
        except Abandoned:
            scheduler.failed(
                RuntimeError(f"rank {rank.number} was unwound, and nothing had failed")
            )
        except BaseException as error:
            if scheduler.error is None:
                scheduler.failed(self._life.failed(rank.number, error))

    # ---- in the thread of the caller ---------------------------------------------------

    def _watch(self) -> None:
        """Wait for the end of the run; let no rank keep the turn beyond the deadline."""
        scheduler = self._scheduler
        while not scheduler.finished.wait(0.1):
            now, holder = time.monotonic(), scheduler.holder
            if scheduler.error is not None:
                if now - scheduler.failed_at > GRACE / 2:
                    self._unwind()
                    return
            elif holder is not None and now - scheduler.turn_began > self._timeout:
                raise TurnExpired(holder.number, scheduler.where())

    def _unwind(self) -> None:
        """End every rank that is left, the running one by an exception raised inside it."""
        scheduler = self._scheduler
        for rank in scheduler.ranks:
            if rank.thread is None or rank.thread.ident is None:
                rank.state = State.DONE  # interrupted before it was started
        if not scheduler.finished.is_set():
            scheduler.hand_over(None, scheduler.next(len(scheduler.ranks) - 1))
        deadline = time.monotonic() + GRACE
        while not scheduler.finished.is_set() and time.monotonic() < deadline:
            with scheduler.handing:  # one that has handed over must not be hit any more
                holder = scheduler.holder
                if holder is not None and holder.thread is not None and holder.thread.ident:
                    raise_in_thread(holder.thread.ident)
            scheduler.finished.wait(0.25)  # it may have to unwind a world of its own
        self._give_up()

    def _give_up(self) -> None:
        """Leave ranks that hang outside of Python to themselves; let the others end."""
        scheduler = self._scheduler
        while not scheduler.finished.is_set():
            holder, successor = scheduler.holder, None
            if holder is not None:
                holder.lost = True
                if holder.turn.locked():
                    holder.turn.release()  # in case it waits for its turn; nobody else runs now
                successor = scheduler.next(holder.number)
            scheduler.hand_over(holder, successor)
            scheduler.finished.wait(0.05)

    def _join(self) -> None:
        for rank in self._scheduler.ranks:
            if rank.thread is not None and rank.thread.ident is not None and not rank.lost:
                rank.thread.join(timeout=1.0)
