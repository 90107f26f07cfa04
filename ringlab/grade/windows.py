"""What a rank computes while a launch of its own is under way."""

from __future__ import annotations

from typing import NamedTuple

from ringlab.timeline import Event, Timeline

HEAVY = ("matmul", "attention")


class Window(NamedTuple):
    """One launch, from its start to the first wait for it.

    Attributes
    ----------
    launch : int
    flops : int
        Of the matrix products that the rank began meanwhile.
    flops_before : int
        Of those that it began between the launch before, or the beginning, and this one.
    """

    launch: int
    flops: int
    flops_before: int


def windows(timeline: Timeline, rank: int) -> list[Window]:
    """The launches of a rank that moved bytes, in order.

    A launch that is never waited for lasts until the end.
    """
    events = timeline.of(rank)
    moving = [
        (at, e) for at, e in enumerate(events) if e.kind != "wait" and e.bytes_in + e.bytes_out
    ]
    found: list[Window] = []
    before = 0
    for launch in dict.fromkeys(e.launch for _, e in moving):
        start = max(at for at, e in moving if e.launch == launch)
        waits = [at for at, e in enumerate(events) if e.kind == "wait" and e.launch == launch]
        end = min(waits, default=len(events))
        found.append(Window(launch, _flops(events[start:end]), _flops(events[before:start])))
        before = start
    return found


def work_of(timeline: Timeline, rank: int) -> int:
    """FLOPs of all matrix products of a rank."""
    return _flops(timeline.of(rank))


def _flops(events: tuple[Event, ...]) -> int:
    return sum(e.work.flops for e in events if e.work is not None and e.work.kind in HEAVY)
