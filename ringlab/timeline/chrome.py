"""Timelines in the Trace Event Format, which Perfetto and ``chrome://tracing`` show.

Each rank is a process with lanes for computing, sending, receiving, collectives and
waiting. Arrows (flows) lead from a send to its receive.

References
----------
Google, Trace Event Format, 2016, which the tracing projects of Chromium publish.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringlab.timeline.clock import require, span
from ringlab.timeline.events import Event, EventKind
from ringlab.timeline.matching import match
from ringlab.timeline.profiles import profile_events

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline

_Json = dict[str, Any]

LANES: dict[EventKind, tuple[int, str]] = {
    "compute": (0, "compute"),
    "send": (100, "send"),
    "recv": (200, "receive"),
    "collective": (300, "collective"),
    "wait": (400, "wait"),
}
"""Number and name of each kind's lane; what overlaps in one goes to lanes right below."""


def write(
    timeline: Timeline,
    path: str | os.PathLike[str],
    profiles: Mapping[int, str | os.PathLike[str]] | None = None,
) -> Path:
    """Write a trace; see `Timeline.to_chrome_trace`."""
    events = trace_events(timeline)
    for rank, profile in (profiles or {}).items():
        events += profile_events(timeline, rank, profile)
    events.sort(key=lambda event: (event["ph"] != "M", event["ts"]))
    document = {"displayTimeUnit": "ms", "traceEvents": events}
    target = Path(path)
    target.write_text(json.dumps(document), encoding="utf-8")
    return target


def trace_events(timeline: Timeline) -> list[_Json]:
    """The events of a trace, one dictionary each, times in microseconds.

    Raises
    ------
    NoClock
        If an event has no times.
    """
    require(timeline)
    lanes = _lanes(timeline)
    partner = match(timeline).partner
    made: list[_Json] = []
    for rank in range(timeline.world_size):
        made += _names(rank, {lanes[p] for p, e in enumerate(timeline.events) if e.rank == rank})
    for place, event in enumerate(timeline.events):
        made.append(_slice(event, lanes[place]))
        if event.kind == "send" and place in partner:
            other = partner[place]
            made += _arrow(place, event, lanes[place], timeline.events[other], lanes[other])
    return made


def _lanes(timeline: Timeline) -> list[int]:
    """The lane of each event: slices of one lane must not overlap."""
    busy_until: dict[tuple[int, int], int] = {}
    lanes = [0] * len(timeline.events)
    for place in sorted(range(len(lanes)), key=lambda p: span(timeline.events[p])):
        event = timeline.events[place]
        start, end = _ticks(event)
        lane = LANES[event.kind][0]
        while busy_until.get((event.rank, lane), 0) > start:
            lane += 1
        busy_until[event.rank, lane] = end
        lanes[place] = lane
    return lanes


def _ticks(event: Event) -> tuple[int, int]:
    """Start and end in whole nanoseconds.

    Perfetto rounds the start and the duration to them, each by itself: a slice of finer times
    may reach into the next one, and is dropped.
    """
    start, end = span(event)
    return round(start * 1e9), round(end * 1e9)


def _names(rank: int, lanes: set[int]) -> Iterator[_Json]:
    yield _metadata(rank, 0, "process_name", name=f"rank {rank}")
    yield _metadata(rank, 0, "process_sort_index", sort_index=rank)
    for lane in sorted(lanes):
        first, name = max((own for own in LANES.values() if own[0] <= lane), key=lambda own: own[0])
        more = f" ({lane - first + 1})" if lane > first else ""
        yield _metadata(rank, lane, "thread_name", name=name + more)
        yield _metadata(rank, lane, "thread_sort_index", sort_index=lane)


def _metadata(rank: int, lane: int, what: str, **value: object) -> _Json:
    return {"ph": "M", "ts": 0, "pid": rank, "tid": lane, "name": what, "args": value}


def _slice(event: Event, lane: int) -> _Json:
    start, end = _ticks(event)
    args: _Json = {
        "step": event.step,
        "site": event.site,
        "label": event.label,
        "launch": event.launch,
        "peer": event.peer,
        "bytes_out": event.bytes_out,
        "bytes_in": event.bytes_in,
        "shape": list(event.shape),
        "dtype": event.dtype,
    }
    if event.work is not None:
        args["flops"] = event.work.flops
    return {
        "ph": "X",
        "name": _title(event),
        "cat": event.kind,
        "ts": start / 1000,
        "dur": (end - start) / 1000,
        "pid": event.rank,
        "tid": lane,
        "args": args,
    }


def _title(event: Event) -> str:
    if event.kind == "wait":
        return f"wait for {event.name}"
    if event.kind == "compute":
        return event.label or event.name
    if event.peer is None:
        return event.name
    return f"{event.name} {'to' if event.kind == 'send' else 'from'} rank {event.peer}"


def _arrow(number: int, send: Event, lane: int, recv: Event, other: int) -> Iterator[_Json]:
    """From the send's start to the receive's end; each end lies inside its slice."""
    leaves = _ticks(send)[0]
    start, end = _ticks(recv)
    arrives = max(leaves, start, end - (end - start) // 1000)
    common: _Json = {"name": "message", "cat": "message", "id": number}
    yield {**common, "ph": "s", "ts": leaves / 1000, "pid": send.rank, "tid": lane}
    yield {**common, "ph": "f", "bp": "e", "ts": arrives / 1000, "pid": recv.rank, "tid": other}
