"""When everything happens: the earliest times that causes allow.

Nothing is scheduled by a choice that depends on time. Each moment is the latest of a few
others plus a fixed duration, so a shorter duration can never make anything later, and the
order in which the moments are computed does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ringlab.price.program import COMPUTE, ISSUE, Program

UNKNOWN = -1


@dataclass(frozen=True)
class Durations:
    """How long everything takes, in picoseconds.

    Attributes
    ----------
    compute : sequence of int
        By place of the event.
    transfer : sequence of int
        By transfer: from the moment at which all ends have started to the arrival.
    host : sequence of int
        By launch: how much of it the issuing rank cannot compute meanwhile.
    """

    compute: Sequence[int]
    transfer: Sequence[int]
    host: Sequence[int]


@dataclass(frozen=True)
class State:
    """Where a run begins, or where it ended.

    Attributes
    ----------
    clock : tuple of int
        Rank by rank, the moment up to which it is busy.
    groups : dict of int to int
        For the first launch of each rank in each group, the moment from which it may start.
    """

    clock: tuple[int, ...]
    groups: dict[int, int]

    @classmethod
    def zero(cls, program: Program) -> State:
        """Everything begins at 0."""
        return cls((0,) * program.world_size, {})

    def ahead_of(self, other: State) -> int | None:
        """The one time by which everything here is later than in `other`, or None."""
        shift = self.clock[0] - other.clock[0]
        alike = all(a - b == shift for a, b in zip(self.clock, other.clock, strict=True)) and all(
            time - other.groups.get(key, 0) == shift for key, time in self.groups.items()
        )
        return shift if alike else None


@dataclass(frozen=True)
class Times:
    """When everything happened, in picoseconds.

    Attributes
    ----------
    begin, end : list of int
        By place of a compute or wait event.
    issued, done : list of int
        By launch: when it started on its rank, and when all of it had arrived.
    arrived : list of int
        By transfer.
    state : State
        Where the run ended.
    """

    begin: list[int]
    end: list[int]
    issued: list[int]
    done: list[int]
    arrived: list[int]
    state: State


def run(program: Program, durations: Durations, start: State) -> Times:
    """Compute all times.

    Raises
    ------
    ValueError
        If ranks wait for one another in a circle; a recording of a run that ended has none.
    """
    simulation = _Simulation(program, durations, start)
    simulation.go()
    return simulation.times()


class _Simulation:
    def __init__(self, program: Program, durations: Durations, start: State) -> None:
        self.program, self.durations, self.start = program, durations, start
        launches, transfers = len(program.operations), len(program.transfers)
        self.clock = list(start.clock)
        self.at = [0] * program.world_size
        events = len(durations.compute)
        self.begin, self.end = [0] * events, [0] * events
        self.posted = [UNKNOWN] * launches
        self.issued = [UNKNOWN] * launches
        self.done = [UNKNOWN] * launches
        self.open = [len(operations) for operations in program.operations]
        self.missing = [len(ends) for ends in program.transfers]
        self.arrived = [0] * transfers
        self.next = [UNKNOWN] * launches
        for launch, before in enumerate(program.before):
            if before >= 0:
                self.next[before] = launch
        self.waiting: dict[int, int] = {}
        self.charged: set[int] = set()
        self.runnable = list(range(program.world_size))

    def go(self) -> None:
        """Let every rank go on until all are at their end."""
        while self.runnable:
            self._advance(self.runnable.pop())
        stuck = [r for r, at in enumerate(self.at) if at < len(self.program.steps[r])]
        if stuck:
            raise ValueError(f"ranks {stuck} of the recording wait for one another in a circle.")

    def _advance(self, rank: int) -> None:
        """Do what a rank does until it waits for something whose time is not known yet."""
        steps, compute = self.program.steps[rank], self.durations.compute
        now, at = self.clock[rank], self.at[rank]
        while at < len(steps):
            what, event, launch = steps[at]
            if what == COMPUTE:
                self.begin[event] = now
                now += compute[event]
                self.end[event] = now
            elif what == ISSUE:
                self._post(launch, now)
            else:
                done = self.done[launch]
                if done == UNKNOWN:
                    self.waiting[launch] = rank
                    break
                self.begin[event] = now
                now = max(now + self._charge(launch), done)
                self.end[event] = now
            at += 1
        self.clock[rank], self.at[rank] = now, at

    def _charge(self, launch: int) -> int:
        """What a launch costs its rank, at the first wait for it."""
        if not self.durations.host[launch] or launch in self.charged:
            return 0
        self.charged.add(launch)
        return self.durations.host[launch]

    def _post(self, launch: int, now: int) -> None:
        self.posted[launch] = now
        before = self.program.before[launch]
        if before < 0:
            self._issue(launch, max(now, self.start.groups.get(launch, 0)))
        elif self.done[before] != UNKNOWN:
            self._issue(launch, max(now, self.done[before]))

    def _issue(self, launch: int, moment: int) -> None:
        """Start a launch, and settle everything that follows from it."""
        starting = [(launch, moment)]
        while starting:
            launch, moment = starting.pop()
            self.issued[launch] = moment
            for transfer in self.program.operations[launch]:
                self.arrived[transfer] = max(self.arrived[transfer], moment)
                self.missing[transfer] -= 1
                if self.missing[transfer] == 0:
                    self.arrived[transfer] += self.durations.transfer[transfer]
                    starting += self._arrive(transfer)

    def _arrive(self, transfer: int) -> list[tuple[int, int]]:
        """Close the launches of a transfer; the next ones of their groups may start."""
        following = []
        for end in self.program.transfers[transfer]:
            launch = self.program.launch_of[end]
            self.open[launch] -= 1
            if self.open[launch]:
                continue
            done = max(self.arrived[t] for t in self.program.operations[launch])
            self.done[launch] = done
            if launch in self.waiting:
                self.runnable.append(self.waiting.pop(launch))
            after = self.next[launch]
            if after != UNKNOWN and self.posted[after] >= 0:
                following.append((after, max(self.posted[after], done)))
        return following

    def times(self) -> Times:
        """The result."""
        groups = {}
        for first, last in self.program.last_of.items():
            groups[first] = max(self.done[last], self.clock[self.program.rank_of[first]])
        state = State(tuple(self.clock), groups)
        return Times(self.begin, self.end, self.issued, self.done, self.arrived, state)
