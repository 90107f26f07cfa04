"""Ranks take turns: one runs, and hands over only inside the world.

The order of turns depends on nothing but the program, so two runs of it are equal. A rank
gives its turn away when it blocks, polls, returns or raises; the next rank in cyclic order
that can run takes it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection
from typing import NoReturn

from ringlab.world.virtual.turns import Abandoned, Rank, State, Waitable, raise_at_next_line

PATIENCE = 8
"""How often a program may catch the exception that unwinds it before it is raised at any line."""

HOPELESS = 10_000
"""How often programs may ask 'done yet?' in a row while nothing else happens anywhere."""


class Scheduler:
    """Says whose turn it is.

    Parameters
    ----------
    size : int
        Number of ranks.
    seed : int
        Rank r starts with every random generator seeded with ``seed + r``.
    examine : callable
        Called with the rank that has blocked or returned; returns the error to end the run
        with, or None.
    here : collection of int
        The ranks that live in this process.
    listen : callable, optional
        Waits for news of ranks that live elsewhere, a moment at most.

    Attributes
    ----------
    error : exception or None
        What the run ends with, from the moment it has failed.
    failed_at, turn_began : float
        Times on the monotonic clock, for the deadline.
    holder : Rank or None
        Whose turn it is; None before the first turn and after the last.
    finished : Event
        Set when no rank is left.
    handing : Lock
        Held while the turn passes on.
    """

    def __init__(
        self,
        size: int,
        seed: int,
        examine: Callable[[int], Exception | None],
        here: Collection[int],
        listen: Callable[[], object] | None = None,
    ) -> None:
        self.ranks = [Rank(r, seed + r) for r in range(size)]
        for rank in self.ranks:
            if rank.number not in here:
                rank.state = State.DONE
        self.error: BaseException | None = None
        self.returned: set[int] = set()
        self.finished = threading.Event()
        self.handing = threading.Lock()
        self.turn_began = self.failed_at = time.monotonic()
        self.holder: Rank | None = None
        self._examine, self._listen = examine, listen
        self._quiet_polls = 0

    # ---- called by ranks ---------------------------------------------------------------

    def block(self, number: int, on: Waitable) -> None:
        """Give the turn away until `on` is done."""
        rank = self.ranks[number]
        rank.state, rank.waiting = State.BLOCKED, on
        error = self._examine(number)
        if error is not None:
            self.fail(error)
        self._switch(rank)
        rank.waiting = None
        self.check_alive(number)

    def poll(self, number: int) -> bool:
        """Give every other rank a turn, for a program that asks 'is it done yet?'.

        Returns
        -------
        bool
            False if asking has become hopeless: nobody does anything but ask.
        """
        rank = self.ranks[number]
        self.check_alive(number)
        self._quiet_polls += 1
        rank.state = State.POLLING
        self._switch(rank)
        self.check_alive(number)
        return self._quiet_polls <= HOPELESS

    def something_happened(self) -> None:
        """Called when a rank has posted an operation."""
        self._quiet_polls = 0

    def check_alive(self, number: int) -> None:
        """Unwind the calling rank if the run has already failed."""
        if self.error is None:
            self.turn_began = time.monotonic()
            return
        rank = self.ranks[number]
        rank.unwinds += 1
        if rank.unwinds > PATIENCE:
            raise_at_next_line(sys._getframe(1))
        raise Abandoned

    def fail(self, error: BaseException) -> NoReturn:
        """End the run with `error` unless it has failed already; unwinds the caller."""
        self.failed(error)
        raise Abandoned

    # ---- turns -------------------------------------------------------------------------

    def failed(self, error: BaseException) -> None:
        """Note the error to end the run with, unless there is one."""
        if self.error is None:
            self.error = error
            self.failed_at = time.monotonic()

    def next(self, after: int) -> Rank | None:
        """The rank whose turn comes when rank `after` gives its away, itself included."""
        size, failed = len(self.ranks), self.error is not None
        for step in range(1, size + 1):
            rank = self.ranks[(after + step) % size]
            if rank.can_run() or (failed and rank.state is not State.DONE and not rank.lost):
                return rank
        return None

    def _switch(self, rank: Rank) -> None:
        successor = self._successor(rank.number)
        if successor is None:
            self.fail(self._unexplained())
        if successor is rank:
            rank.state = State.RUNNING
            return
        rank.random.save()
        self.hand_over(rank, successor)
        self.take(rank)

    def hand_over(self, giver: Rank | None, taker: Rank | None) -> None:
        """Give the turn away, unless it has been taken from `giver` meanwhile."""
        now = time.monotonic()
        with self.handing:
            if self.holder is giver:
                self.turn_began = now
                # An exception that unwinds can come after any call, so there is none between
                # these lines; what follows them may be repeated.
                self.holder = taker
                if taker is not None:
                    taker.turn.release()
        if self.holder is None:
            self.finished.set()

    def take(self, rank: Rank) -> None:
        """Wait for the turn of the calling rank."""
        rank.turn.acquire()
        rank.state = State.RUNNING
        rank.random.restore()

    def left(self, rank: Rank) -> None:
        """Take the calling rank out of the run and hand its turn on. May be repeated."""
        rank.state = State.DONE
        self.returned.add(rank.number)
        if self.error is None:
            error = self._aftermath(rank.number)
            if error is not None:
                self.failed(error)
        self.hand_over(rank, self._successor(rank.number))

    def _aftermath(self, number: int) -> Exception | None:
        """What is wrong now that a rank has returned; the thread must survive the question."""
        try:
            error = self._examine(number)
        except Exception as bug:
            return bug
        if error is not None or self._listen is not None:
            return error
        return self._unexplained() if self._any_left() and self.next(number) is None else None

    def _any_left(self) -> bool:
        return any(rank.state is not State.DONE for rank in self.ranks)

    def _successor(self, after: int) -> Rank | None:
        """The next to take the turn; if need be once ranks elsewhere have let it go on."""
        found = self.next(after)
        while found is None and self._listen is not None and self._any_left():
            try:
                self._listen()
            except Exception as error:
                self.failed(error)
            self.turn_began = time.monotonic()
            found = self.next(after)
        return found

    def _unexplained(self) -> RuntimeError:
        where = "\n".join(self.where())
        return RuntimeError(f"an error of the virtual world: no rank can run.\n{where}")

    def where(self) -> list[str]:
        """One line a rank: the line at which it stands."""
        return [f"  rank {rank.number}: {rank.where()}" for rank in self.ranks]
