"""The critical path: the chain of events that a run could not have been shorter than."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlab.timeline.clock import makespan, require, span
from ringlab.timeline.events import Event, EventKind
from ringlab.timeline.matching import match

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline

TOLERANCE = 1e-9
"""Seconds by which the times of one moment may differ: rounding."""

LEAST_BLOCKING = 0.01
"""Share of a message's time that a wait must last to have been held up by it: on real ranks
every wait takes a few microseconds, though the message came long before."""

_OCCUPYING: tuple[EventKind, ...] = ("compute", "wait")


@dataclass(frozen=True)
class CriticalPath:
    """What determined how long a run took.

    Attributes
    ----------
    events : tuple of Event
        From the beginning of the run to its end. A message stands there with the end that was
        issued later, which is what it waited for, and then with the wait that it ended.
    seconds : tuple of float
        What each event contributes: the time from where the path enters it to where it enters
        the next one. Idle time between two events counts to the earlier one.
    before : float
        Seconds before the first event.
    """

    events: tuple[Event, ...]
    seconds: tuple[float, ...]
    before: float = 0.0

    @property
    def length(self) -> float:
        """Seconds from the beginning of the run to the end of the path: the makespan."""
        return self.before + sum(self.seconds)

    def seconds_of(self, *kinds: EventKind) -> float:
        """Seconds that events of some kinds contribute."""
        return sum(
            s for event, s in zip(self.events, self.seconds, strict=True) if event.kind in kinds
        )


def critical_path(timeline: Timeline) -> CriticalPath:
    """The chain of causes that ends with the last event of a run.

    Raises
    ------
    NoClock
        If an event has no times.

    Notes
    -----
    It is walked from the end: a wait that blocked (for more than 1 % of the time that its
    message took) was ended by the message; a message began
    when the later of its two ends (of a collective the last of its members) was issued; and
    that was issued when the rank had done what stands before it.
    """
    require(timeline)
    if not timeline.events:
        return CriticalPath((), ())
    walk = _Walk(timeline)
    places, entries = walk.back_from(walk.last())
    ends = [*entries[1:], makespan(timeline)]
    seconds = tuple(end - start for start, end in zip(entries, ends, strict=True))
    return CriticalPath(tuple(walk.events[p] for p in places), seconds, entries[0])


class _Walk:
    """Goes from effects to causes; events are named by their place in the timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self.events = timeline.events
        self.matching = match(timeline)
        # what holds a rank up, by rank in order of its end: (end, place)
        self.doing: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        for place, event in enumerate(self.events):
            if event.kind in _OCCUPYING:
                self.doing[event.rank].append((span(event)[1], place))
        for ends in self.doing.values():
            ends.sort()

    def last(self) -> int:
        """The event that ends last; of a message and the wait for it, the wait."""

        def key(place: int) -> tuple[float, bool, int]:
            event = self.events[place]
            return span(event)[1], event.kind in _OCCUPYING, -place

        return max(range(len(self.events)), key=key)

    def back_from(self, place: int) -> tuple[list[int], list[float]]:
        """The path to an event, and the moment at which it enters each of its events."""
        places, entries, seen = [], [], set[int]()
        cause: int | None = place
        moment = span(self.events[place])[1]
        while cause is not None and cause not in seen:
            seen.add(cause)
            places.append(cause)
            cause, moment = self._enter(cause, moment)
            entries.append(moment)
        return places[::-1], entries[::-1]

    def _enter(self, place: int, until: float) -> tuple[int | None, float]:
        """What an event came of, and the moment from which on the event is the reason."""
        event = self.events[place]
        start, end = span(event)
        if event.kind == "wait":
            operation = self.matching.operation.get(place)
            if operation is not None:
                issued, (_, arrived) = self._later_end(operation), span(self.events[operation])
                way = arrived - span(self.events[issued])[0]
                if min(arrived, end) - start > max(TOLERANCE, LEAST_BLOCKING * way):
                    return issued, min(arrived, end, until)
        elif event.kind != "compute" and self._later_end(place) != place:
            return self._later_end(place), min(end, until)
        return self._before(place), min(start, until)

    def _later_end(self, operation: int) -> int:
        """The end of a message, or the part of a collective, that was issued last."""
        ends = self.matching.ends(operation)
        own = self.events[operation].rank
        return max(ends, key=lambda p: (span(self.events[p])[0], self.events[p].rank == own, -p))

    def _before(self, place: int) -> int | None:
        """What the rank of an event did last before it."""
        event = self.events[place]
        done = self.doing[event.rank]
        for index in range(bisect_right(done, (span(event)[0] + TOLERANCE, place)), 0, -1):
            if done[index - 1][1] < place:
                return done[index - 1][1]
        return None
