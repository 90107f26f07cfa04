"""How long ranks compute, wait and communicate, and how much of that goes on at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlab.timeline.clock import span
from ringlab.timeline.events import EventKind
from ringlab.timeline.spans import Span, length, subtract, union

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline

COMMUNICATION: tuple[EventKind, ...] = ("send", "recv", "collective")


def busy(timeline: Timeline, rank: int) -> float:
    """Seconds in which a rank computes: its compute events, overlaps counted once.

    Raises
    ------
    NoClock
        If the timeline has no times. So do all functions here.
    """
    return length(_spans(timeline, rank, "compute"))


def waiting(timeline: Timeline, rank: int) -> float:
    """Seconds in which a rank stands in a wait."""
    return length(_spans(timeline, rank, "wait"))


def exposed_communication(timeline: Timeline, rank: int) -> float:
    """Seconds in which something of a rank is under way or waited for, and it computes nothing.

    Notes
    -----
    An operation is under way from its issue to its end. On real ranks its end is the moment
    at which the rank knew of it: the return of the wait.
    """
    under_way = _spans(timeline, rank, "wait", *COMMUNICATION)
    return length(subtract(under_way, _spans(timeline, rank, "compute")))


def overlap(timeline: Timeline, rank: int | None = None) -> float:
    """Share of the communication time, from 0 to 1, in which the rank computes as well.

    Parameters
    ----------
    timeline : Timeline
    rank : int, optional
        One rank; by default the seconds of all of them are taken together.

    Returns
    -------
    float
        1 if there is no communication: nothing is left exposed.

    Notes
    -----
    On real ranks a message counts as under way until the wait for it returns (gloo tells
    nothing earlier), also if it arrived long before. The share is then an upper bound.
    """
    ranks = range(timeline.world_size) if rank is None else [rank]
    under_way = hidden = 0.0
    for one in ranks:
        communication = _spans(timeline, one, *COMMUNICATION)
        total = length(communication)
        under_way += total
        hidden += total - length(subtract(communication, _spans(timeline, one, "compute")))
    return hidden / under_way if under_way else 1.0


def imbalance(timeline: Timeline) -> float:
    """The busiest rank's compute over the mean of all ranks: 1 where all compute alike.

    Notes
    -----
    By time where the timeline has a clock. A recording of the virtual world is compared by
    floating-point operations instead, of all operators whose formula is known.
    """
    ranks = range(timeline.world_size)
    clockless = any(event.start is None for event in timeline.events)
    amounts = [flops(timeline, r) if clockless else busy(timeline, r) for r in ranks]
    mean = sum(amounts) / len(amounts)
    return max(amounts) / mean if mean else 1.0


def flops(timeline: Timeline, rank: int) -> int:
    """Floating-point operations of a rank's compute events whose `work` is known."""
    return sum(e.work.flops for e in timeline.of(rank, "compute") if e.work is not None)


def _spans(timeline: Timeline, rank: int, *kinds: EventKind) -> list[Span]:
    return union(span(event) for event in timeline.of(rank) if event.kind in kinds)
