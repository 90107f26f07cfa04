"""Times of events, where a timeline has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringlab.timeline.events import Event
from ringlab.timeline.log import EventLog
from ringlab.timeline.spans import Span

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline


class NoClock(ValueError):
    """A question about times to a timeline that has none, or not all of them."""


def span(event: Event) -> Span:
    """Start and end of an event.

    Raises
    ------
    NoClock
        If it has none, or never ended.
    """
    if event.start is None:
        raise NoClock(
            "this timeline holds no times, because the virtual world has no clock: price it, as in "
            "world.price('8x h100-nvlink'), or run the program on real ranks, World(n, "
            "backend='gloo')."
        )
    if event.end is None:
        raise NoClock(
            f"the {event.kind} {event.name!r} of rank {event.rank} issued at {event.site or '?'} "
            "never ended as far as its rank knew: wait for every handle, and ask about times only "
            "after a run that ended well."
        )
    return event.start, event.end


def require(timeline: Timeline) -> None:
    """Refuse a timeline in which an event has no times.

    Raises
    ------
    NoClock
    """
    if ends(timeline) is None:
        for event in timeline.events:
            span(event)


def makespan(timeline: Timeline) -> float:
    """Seconds from the beginning of the run (second 0) to the end of its last event.

    Raises
    ------
    NoClock
        If an event has no times.
    """
    found = ends(timeline)
    if found is not None:
        return float(found.max(initial=0.0))
    return max((span(event)[1] for event in timeline.events), default=0.0)


def ends(timeline: Timeline) -> NDArray[np.float64] | None:
    """When each event ended, where all have times and are kept as numbers; else None."""
    events = timeline.events
    return events.times.end if isinstance(events, EventLog) and events.times else None
