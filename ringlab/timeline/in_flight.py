"""What is in memory on account of communication, by the order of events alone."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

from ringlab.timeline.clock import span
from ringlab.timeline.matching import match

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline


def peak_bytes_in_flight(timeline: Timeline, rank: int | None = None) -> int:
    """The most bytes that are under way at one moment.

    Parameters
    ----------
    timeline : Timeline
    rank : int, optional
        Bytes that this rank has handed over: what it sends and what it receives, messages
        and collectives, each from its issue until its launch has been waited for. It
        needs no clock, since the order of the rank's own events tells. By default the whole
        network: each message once, from its send's start to its receive's end, and of each
        collective what every member sends, from its own start to its end.

    Raises
    ------
    NoClock
        For the whole network, if the timeline has no times.
    """
    if rank is None:
        return _in_the_network(timeline)
    sizes: defaultdict[int, int] = defaultdict(int)
    now = most = 0
    parts: defaultdict[int, int] = defaultdict(int)
    for event in timeline.of(rank):
        if event.kind in ("send", "recv", "collective"):
            size = event.bytes_out + event.bytes_in
            sizes[event.launch] += size
            parts[event.launch] += 1
            now += size
            most = max(most, now)
        elif event.kind == "wait" and parts[event.launch]:
            parts[event.launch] -= 1
            if parts[event.launch] == 0:
                now -= sizes.pop(event.launch)
    return most


def _in_the_network(timeline: Timeline) -> int:
    partner = match(timeline).partner
    changes: defaultdict[float, int] = defaultdict(int)
    for place, event in enumerate(timeline.events):
        if event.kind in ("send", "collective") and event.bytes_out:
            start, end = span(event)
            if place in partner:
                end = span(timeline.events[partner[place]])[1]
            if start < end:
                changes[start] += event.bytes_out
                changes[end] -= event.bytes_out
    return max(accumulate(changes[moment] for moment in sorted(changes)), default=0)


def peak_kv_blocks(timeline: Timeline, rank: int, block_bytes: int) -> float:
    """The most blocks of K and V that a rank needs at one moment, its own included.

    Parameters
    ----------
    timeline : Timeline
        Of a forward pass.
    rank : int
    block_bytes : int
        Bytes of the K and V of one rank.

    Returns
    -------
    float
        1 for a rank that receives nothing; whole where what comes is whole blocks.

    Notes
    -----
    Counted are the bytes of receives and collectives (`bytes_in`), in the order of the rank's
    events. What a launch brings counts from its issue; it is then computed on, and perhaps
    passed on, until the next thing that the rank receives is there, and then dropped. What
    comes last stays. So a ring has at most 3 blocks (its own,
    the one in hand and the one that comes), an all-gather W. Copies that a program makes,
    and what it keeps longer, are not in its events: what is really allocated is measured by
    ``ringlab.meter.PeakBytes``.
    """
    if block_bytes <= 0:
        raise ValueError(f"block_bytes is {block_bytes}; it is a positive number of bytes.")
    coming: dict[int, int] = {}  # bytes by the step in which they were asked for
    most = 0
    for event in timeline.of(rank):
        if event.kind == "wait" or not event.bytes_in:
            continue
        coming[event.step] = coming.get(event.step, 0) + event.bytes_in
        live = sum(size for step, size in coming.items() if step >= _before(coming, event.step))
        most = max(most, live)
    return 1 + most / block_bytes


def _before(steps: dict[int, int], step: int) -> int:
    """The last step before `step` in which something was asked for."""
    return max((other for other in steps if other < step), default=step)
