"""Timelines as text, and back with every field checked for its exact type."""

from __future__ import annotations

import json
from typing import Any, get_args

from ringlab.timeline import Event, EventKind, Timeline, Work

_INT, _TEXT, _TIME = (int,), (str,), (float, type(None))
_EVENT: dict[str, tuple[type, ...]] = {
    "rank": _INT, "kind": _TEXT, "name": _TEXT, "launch": _INT, "group": (list,),
    "peer": (int, type(None)), "bytes_out": _INT, "bytes_in": _INT, "shape": (list,),
    "dtype": _TEXT, "site": _TEXT, "step": _INT, "label": _TEXT, "start": _TIME, "end": _TIME,
    "work": (list, type(None)),
}  # fmt: skip
_WORK: dict[str, tuple[type, ...]] = {
    "kind": _TEXT, "flops": _INT, "bytes_read": _INT, "bytes_written": _INT, "dtype": _TEXT,
    "queries": _INT, "keys": _INT, "head_dim": _INT, "causal": (bool,), "launches": _INT,
}  # fmt: skip


def timeline_text(timeline: Timeline) -> str:
    """A timeline as JSON: its world size, and rows of fields."""
    return json.dumps([timeline.world_size, list(timeline)], separators=(",", ":"))


def timeline_from_text(text: Any) -> Timeline:
    """Make a timeline of what `timeline_text` gave.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    value = json.loads(text) if type(text) is str else None
    if type(value) is not list or len(value) != 2 or type(value[0]) is not int:
        raise ValueError("this is no timeline.")
    size, rows = value
    if size < 1 or type(rows) is not list:
        raise ValueError("this timeline has no ranks or no rows.")
    return Timeline(size, tuple(_event(row, size) for row in rows))


def _event(row: Any, size: int) -> Event:
    _check(row, _EVENT)
    event = Event(*row)
    event = event._replace(group=_integers(event.group), shape=_integers(event.shape))
    in_world = all(0 <= rank < size for rank in (event.rank, *event.group, event.peer or 0))
    if not in_world or event.kind not in get_args(EventKind):
        raise ValueError(f"an event of a timeline is of rank {event.rank} and kind {event.kind}.")
    if event.work is None:
        return event
    _check(list(event.work), _WORK)
    return event._replace(work=Work(*event.work))


def _integers(numbers: Any) -> tuple[int, ...]:
    if any(type(n) is not int for n in numbers):
        raise ValueError("a group or shape of a timeline holds something else than integers.")
    return tuple(numbers)


def _check(row: Any, types: dict[str, tuple[type, ...]]) -> None:
    if type(row) is not list or len(row) != len(types):
        raise ValueError("a row of a timeline has another number of fields.")
    for (name, allowed), entry in zip(types.items(), row, strict=True):
        if type(entry) not in allowed:
            raise ValueError(f"{name} in a timeline is of type {type(entry).__name__}.")
