"""When everything happens: the earliest times that causes allow.

Nothing is scheduled by a choice that depends on time. Each moment is the latest of a few
others plus a fixed duration, so a shorter duration can never make anything later, and the
order in which the moments are computed does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringlab.price.columns import COMPUTE, WAIT, Numbers
from ringlab.price.graph import Circle, Graph
from ringlab.price.program import Program


@dataclass(frozen=True)
class Durations:
    """How long everything takes, in picoseconds.

    Attributes
    ----------
    compute : array
        By place of the event; 0 for what is no compute.
    transfer : array
        By transfer: from the moment at which all ends have started to the arrival.
    host : array
        By launch: how much of it the issuing rank cannot compute meanwhile.
    """

    compute: Numbers
    transfer: Numbers
    host: Numbers


@dataclass(frozen=True)
class State:
    """Where a run begins, or where it ended.

    Attributes
    ----------
    clock : array
        Rank by rank, the moment up to which it is busy.
    groups : array
        For the first launch of each rank in each group, the moment from which it may start.
    """

    clock: Numbers
    groups: Numbers

    def ahead_of(self, other: State) -> int | None:
        """The one time by which everything here is later than in `other`, or None."""
        shifts = np.concatenate([self.clock - other.clock, self.groups - other.groups])
        shift = int(shifts[0])
        return shift if bool((shifts == shift).all()) else None


@dataclass(frozen=True)
class Times:
    """When everything happened, in picoseconds.

    Attributes
    ----------
    begin, end : array
        By place of the event.
    arrived : array
        By transfer.
    state : State
        Where the run ended.
    """

    begin: Numbers
    end: Numbers
    arrived: Numbers
    state: State


class Simulation:
    """The causes of a program, in order; run it with any durations, from any state.

    Its moments are the beginning of each rank, the end of each wait, the start of each launch, the
    arrival of each transfer and the end of each launch, in this order.

    Parameters
    ----------
    program : Program

    Raises
    ------
    ValueError
        If ranks wait for one another in a circle; a recording of a run that ended has none.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        events, launches, moving = program.events, program.launches, program.transfers
        ranks, waits = program.world_size, program.waits
        self._waited = ranks  # where the moments of each kind begin
        self._issued = self._waited + len(waits)
        self._arrived = self._issued + len(launches)
        self._done = self._arrived + len(moving)
        self._of_wait = np.full(max(len(events), 1), -1, dtype=np.int64)
        self._of_wait[waits] = self._waited + np.arange(len(waits))
        self._end_launch = launches.of_event[moving.ends]
        self._end_transfer = moving.of_end
        self._followers = np.flatnonzero(launches.before >= 0)
        waiting = np.arange(self._waited, self._issued)
        issuing = np.arange(self._issued, self._arrived)
        causes = [
            self._moment(program.base[waits]), self._done + launches.of_event[waits],
            self._moment(program.base[launches.event]),
            self._done + launches.before[self._followers],
            self._issued + self._end_launch, self._arrived + self._end_transfer,
        ]  # fmt: skip
        effects = [
            waiting, waiting, issuing, self._issued + self._followers,
            self._arrived + self._end_transfer, self._done + self._end_launch,
        ]  # fmt: skip
        self._moments = self._done + len(launches)
        try:
            self._graph = Graph(self._moments, np.concatenate(causes), np.concatenate(effects))
        except Circle as circle:
            raise ValueError(
                f"ranks {self._ranks_of(circle.moments)} of the recording wait for one another in "
                "a circle."
            ) from None

    def _ranks_of(self, moments: Numbers) -> list[int]:
        """Whose waits some moments are."""
        waits = moments[(moments >= self._waited) & (moments < self._issued)] - self._waited
        ranks = np.unique(self.program.events.rank[self.program.waits[waits]])
        return [int(rank) for rank in ranks]

    def _moment(self, base: Numbers) -> Numbers:
        """The moment of a wait's end, or of a rank's beginning."""
        return np.where(base >= 0, self._of_wait[np.maximum(base, 0)], -1 - base)

    def at_zero(self) -> State:
        """Everything begins at 0."""
        heads, _ = self.program.launches.ends_of_chains
        zeros = np.zeros(self.program.world_size + len(heads), dtype=np.int64)
        return State(zeros[: self.program.world_size], zeros[self.program.world_size :])

    def run(self, durations: Durations, start: State) -> Times:
        """Compute all times."""
        program = self.program
        launches, waits = program.launches, program.waits
        heads, lasts = launches.ends_of_chains
        since = self._since(durations.compute)
        charge = self._charges(durations.host)
        delay = np.concatenate([
            since[waits] + charge, np.zeros_like(waits),
            since[launches.event], np.zeros_like(self._followers),
            durations.transfer[self._end_transfer], np.zeros_like(self._end_launch),
        ])  # fmt: skip
        begin = np.zeros(self._moments, dtype=np.int64)
        begin[: program.world_size] = start.clock
        begin[self._issued + heads] = start.groups
        time = self._graph.latest(begin, delay)
        clock = time[self._moment(program.last_waits)] + self._rest(durations.compute)
        ranks = program.events.rank[launches.event[heads]]
        groups = np.maximum(time[self._done + lasts], clock[ranks])
        return self._times(time, since, durations.compute, State(clock, groups))

    def _since(self, compute: Numbers) -> Numbers:
        """Event by event, how long its rank has computed since its last wait."""
        by_rank, base = self.program.by_rank, self.program.base
        total = np.zeros(len(base), dtype=np.int64)
        ordered = compute[by_rank]
        total[by_rank] = np.cumsum(ordered) - ordered
        first = self._first_events()
        origin = np.where(base >= 0, base, first[np.maximum(-1 - base, 0)])
        since: Numbers = total - total[origin]
        return since

    def _first_events(self) -> Numbers:
        """Rank by rank, the place of its first event."""
        ranks = self.program.events.rank[self.program.by_rank]
        place = np.searchsorted(ranks, np.arange(self.program.world_size))
        first = np.zeros(self.program.world_size, dtype=np.int64)
        busy = place < len(ranks)
        first[busy] = self.program.by_rank[place[busy]]
        return first

    def _rest(self, compute: Numbers) -> Numbers:
        """Rank by rank, how long it computes after its last wait."""
        rank, last = self.program.events.rank, self.program.last_waits
        after = self.program.base == last[rank]
        # float64 would round: bincount takes weights as such
        rest = np.zeros(self.program.world_size, dtype=np.int64)
        np.add.at(rest, rank[after], compute[after])
        return rest

    def _charges(self, host: Numbers) -> Numbers:
        """Wait by wait, what the launch costs its rank: at the first wait for it."""
        launch = self.program.launches.of_event[self.program.waits]
        _, first = np.unique(launch, return_index=True)
        charge = np.zeros(len(launch), dtype=np.int64)
        charge[first] = host[launch[first]]
        return charge

    def _times(self, time: Numbers, since: Numbers, compute: Numbers, state: State) -> Times:
        program, kind = self.program, self.program.events.kind
        begin = np.zeros(len(kind), dtype=np.int64)
        local = (kind == COMPUTE) | (kind == WAIT)
        begin[local] = time[self._moment(program.base[local])] + since[local]
        end = begin + compute
        end[program.waits] = time[self._waited : self._issued]
        arrived = time[self._arrived : self._done]
        ends = program.transfers.ends
        begin[ends] = time[self._issued + self._end_launch]
        end[ends] = arrived[self._end_transfer]
        return Times(begin, end, arrived, state)
