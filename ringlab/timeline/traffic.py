"""Which rank sends how much to which: messages, and collectives by their algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringlab.timeline.events import Event
from ringlab.timeline.matching import match

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline


def traffic(timeline: Timeline) -> list[list[int]]:
    """Bytes from each rank to each other rank.

    Returns
    -------
    list of list of int
        ``[sender][receiver]``. The sum of a row is ``timeline.bytes_sent(sender)``; without
        messages that nobody received the sum of a column is `bytes_received`.

    Notes
    -----
    A collective goes where its documented algorithm sends it: all-gather, reduce-scatter,
    all-reduce and broadcast to the next rank of the group, a reduce to the one before, a gather
    to its root, a scatter from its root. Of an all-to-all only each rank's total is
    recorded; it is spread over the others in proportion to what each receives.
    """
    matrix = [[0] * timeline.world_size for _ in range(timeline.world_size)]
    meeting = match(timeline).meeting
    for place, event in enumerate(timeline.events):
        if event.kind == "send" and event.peer is not None:
            matrix[event.rank][event.peer] += event.bytes_out
        elif event.kind == "collective" and event.bytes_out:
            parts = [timeline.events[p] for p in meeting[place]]
            for peer, size in _spread(event, parts):
                matrix[event.rank][peer] += size
    return matrix


def _spread(event: Event, parts: list[Event]) -> Iterator[tuple[int, int]]:
    """Whom a member of a collective sends what."""
    if event.name in ("all_to_all", "gather", "scatter"):
        yield from _in_proportion(event, parts)
        return
    step = -1 if event.name == "reduce" else 1
    place = event.group.index(event.rank)
    yield event.group[(place + step) % len(event.group)], event.bytes_out


def _in_proportion(event: Event, parts: list[Event]) -> Iterator[tuple[int, int]]:
    others = [part for part in parts if part.rank != event.rank]
    total = sum(part.bytes_in for part in others)
    shared = before = 0
    for part in others:
        shared += part.bytes_in
        upto = event.bytes_out * shared // total if total else 0
        yield part.rank, upto - before
        before = upto
