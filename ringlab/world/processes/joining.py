"""The recordings of all ranks as one timeline."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ringlab.timeline import Event, Timeline, with_steps
from ringlab.world.processes.recorder import Recording


def joined(recordings: Sequence[Recording]) -> Timeline:
    """One timeline, rank after rank, whose second 0 is when the first rank called the program."""
    zero = min((r.began for r in recordings if r.began is not None), default=None)
    events = [
        event if zero is None else _shifted(event, zero)
        for recording in recordings
        for event in recording.events
    ]
    began = None if zero is None else time.time() - (time.monotonic() - zero)
    return Timeline(len(recordings), with_steps(events), began)


def _shifted(event: Event, zero: float) -> Event:
    start = None if event.start is None else event.start - zero
    end = None if event.end is None else event.end - zero
    return event._replace(start=start, end=end)
