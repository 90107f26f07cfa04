"""Where the time went in which ranks did nothing useful."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlab.timeline.clock import makespan, require, span
from ringlab.timeline.events import Event
from ringlab.timeline.matching import match
from ringlab.timeline.spans import length, subtract, union
from ringlab.timeline.times import COMMUNICATION

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline


@dataclass(frozen=True)
class LostTime:
    """The time of all ranks, in rank-seconds: useful, or lost for one of four reasons.

    Attributes
    ----------
    useful : float
        Computing what one device would compute as well.
    imbalance : float
        Waiting for a rank that still computes: before a message because its other end is not
        issued yet, or at the end because other ranks are not done.
    communication : float
        Waiting for a message whose both ends are issued, as it is on its way or behind others;
        and neither computing nor waiting while something is under way, as in issuing it.
    merge : float
        Merging partial results (compute labelled ``"merge"``, and ``ringlab::merge``).
    rest : float
        Everything else: copies into buffers (labelled ``"copy"``), starting late, the
        interpreter.
    """

    useful: float
    imbalance: float
    communication: float
    merge: float
    rest: float

    @property
    def lost(self) -> float:
        """Rank-seconds that were not useful."""
        return self.imbalance + self.communication + self.merge + self.rest

    @property
    def efficiency(self) -> float:
        """Useful share of all rank-seconds, from 0 to 1."""
        total = self.useful + self.lost
        return self.useful / total if total else 1.0

    def shares(self) -> dict[str, float]:
        """What part of the lost time each reason has; they sum to 1, or are 0 if none is lost."""
        parts = {
            "imbalance": self.imbalance,
            "communication": self.communication,
            "merge": self.merge,
            "rest": self.rest,
        }
        return {name: part / self.lost if self.lost else 0.0 for name, part in parts.items()}


def lost_time(timeline: Timeline) -> LostTime:
    """Divide the time of a run, makespan times ranks, by what it was spent on.

    Raises
    ------
    NoClock
        If an event has no times.

    Notes
    -----
    An instant in which a rank waits is judged by what it waits for. If the message is under
    way, that is communication. If its other end is not issued yet, the rank there decides:
    while that one computes it is imbalance, while it waits itself the question is passed on to
    the rank for which *it* waits, and in between it is rest. A rank that is done waits for the
    rank that is done last.
    """
    require(timeline)
    accounts = _Accounts(timeline)
    waits = {"imbalance": 0.0, "communication": 0.0, "rest": 0.0}
    useful = merge = copy = 0.0
    total = makespan(timeline)
    for rank, own in enumerate(accounts.ranks):
        useful, merge, copy = useful + own.useful, merge + own.merge, copy + own.copy
        waits["rest"] += own.end - sum(state.end - state.start for state in own.states)
        for reason, seconds in accounts.waits(rank, total):
            waits[reason] += seconds
    return LostTime(useful, waits["imbalance"], waits["communication"], merge,
                    waits["rest"] + copy)  # fmt: skip


@dataclass(frozen=True)
class _State:
    """What a rank does for a while; in a wait, whose end of its message is issued last and when."""

    start: float
    end: float
    waits_for: int | None = None
    issued: float = 0.0
    computes: bool = False


class _Rank:
    """One rank's time: its states in order, without overlap, and how its compute divides."""

    def __init__(self, states: list[_State], events: tuple[Event, ...]) -> None:
        self.states = states
        self.starts = [state.start for state in states]
        self.end = max((state.end for state in states), default=0.0)
        compute = [event for event in events if event.kind == "compute"]
        self.busy = length(span(e) for e in compute)
        extra = [e for e in compute if _is_merge(e) or _is_copy(e)]
        self.merge = length(span(e) for e in extra if _is_merge(e))
        self.copy = length(span(e) for e in extra) - self.merge
        self.useful = self.busy - self.merge - self.copy


class _Accounts:
    def __init__(self, timeline: Timeline) -> None:
        self.events = timeline.events
        self.matching = match(timeline)
        places: list[list[int]] = [[] for _ in range(timeline.world_size)]
        for place, event in enumerate(self.events):
            places[event.rank].append(place)
        self.ranks = [_Rank(self._states(own), timeline.of(r)) for r, own in enumerate(places)]
        ends = [rank.end for rank in self.ranks]
        self.last = ends.index(max(ends))

    def _states(self, places: list[int]) -> list[_State]:
        """Computing; else waiting; else having something under way, as while issuing it."""
        computing = union(span(self.events[p]) for p in places if self.events[p].kind == "compute")
        states = [_State(*piece, computes=True) for piece in computing]
        taken = list(computing)
        for place in places:
            if self.events[place].kind == "wait":
                pieces = subtract([span(self.events[place])], taken)
                states += [_State(*piece, *self._awaited(place)) for piece in pieces]
                taken += pieces
        under_way = [span(self.events[p]) for p in places if self.events[p].kind in COMMUNICATION]
        states += [_State(*piece) for piece in subtract(under_way, taken)]
        return sorted(states, key=lambda state: state.start)

    def _awaited(self, wait: int) -> tuple[int, float] | tuple[None, float]:
        """The rank that issues its end last, and when."""
        if wait not in self.matching.operation:
            return None, 0.0
        ends = self.matching.ends(self.matching.operation[wait])
        latest = max(ends, key=lambda place: span(self.events[place])[0])
        return self.events[latest].rank, span(self.events[latest])[0]

    def waits(self, rank: int, until: float) -> Iterator[tuple[str, float]]:
        """Why a rank waits, for all its waits, and for the others at its end."""
        own = self.ranks[rank]
        for state in own.states:
            if not state.computes:
                yield from self._wait(state, rank, state.start, state.end, ())
        yield from self._reasons(self.last, own.end, until, (rank,))

    def _reasons(
        self, rank: int, start: float, end: float, asking: tuple[int, ...]
    ) -> Iterator[tuple[str, float]]:
        """Why `rank` does not go on between two moments: reasons and seconds, without a gap."""
        if rank in asking:
            yield "rest", max(0.0, end - start)
            return
        now = start
        own = self.ranks[rank]
        for state in own.states[max(0, bisect_right(own.starts, start) - 1) :]:
            if state.start >= end:
                break
            first, last = max(state.start, now), min(state.end, end)
            if last <= first:
                continue
            yield "rest", first - now
            if state.computes:
                yield "imbalance", last - first
            else:
                yield from self._wait(state, rank, first, last, asking)
            now = last
        yield "rest", max(0.0, end - now)

    def _wait(
        self, state: _State, rank: int, start: float, end: float, asking: tuple[int, ...]
    ) -> Iterator[tuple[str, float]]:
        issued = min(max(state.issued, start), end)
        if state.waits_for is not None and issued > start:
            yield from self._reasons(state.waits_for, start, issued, (*asking, rank))
        yield "communication", end - issued


def _is_merge(event: Event) -> bool:
    return event.label == "merge" or event.name.startswith("ringlab::merge")


def _is_copy(event: Event) -> bool:
    return event.label == "copy"
