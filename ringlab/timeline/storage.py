"""Timelines as JSON, exactly: so that what one machine recorded is priced on another."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringlab.timeline.events import Event, Work

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline

FORMAT = "ringlab timeline"
VERSION = 1


def write(timeline: Timeline, path: str | os.PathLike[str]) -> Path:
    """Write a timeline to a file; see `Timeline.save`."""
    target = Path(path)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "world_size": timeline.world_size,
        "began": timeline.began,
        "fields": Event._fields,
        "work_fields": Work._fields,
        "events": tuple(timeline.events),
    }
    target.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
    return target


def read(path: str | os.PathLike[str]) -> tuple[int, tuple[Event, ...], float | None]:
    """World size, events and beginning from a file; see `Timeline.load`."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(path)} holds no timeline; Timeline.save writes one.")
    if document["version"] != VERSION:
        raise ValueError(
            f"{os.fspath(path)} is of version {document['version']} of the format; this ringlab "
            f"reads version {VERSION}."
        )
    fields, work_fields = document["fields"], document["work_fields"]
    unknown = {*fields} - {*Event._fields} | {*work_fields} - {*Work._fields}
    if unknown:
        raise ValueError(f"{os.fspath(path)} has unknown fields: {', '.join(sorted(unknown))}.")
    events = (
        _event(dict(zip(fields, row, strict=True)), work_fields) for row in document["events"]
    )
    return document["world_size"], tuple(events), document["began"]


def _event(row: dict[str, Any], work_fields: list[str]) -> Event:
    row["group"], row["shape"] = tuple(row["group"]), tuple(row["shape"])
    if row.get("work") is not None:
        row["work"] = Work(**dict(zip(work_fields, row["work"], strict=True)))
    return Event(**row)
