"""A recording as columns: one array for each thing that a price needs to know of its events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringlab.timeline import Timeline
from ringlab.timeline.events import EventKind
from ringlab.timeline.log import EventLog, What

Numbers = NDArray[np.int64]

KINDS: tuple[EventKind, ...] = ("compute", "send", "recv", "collective", "wait")
COMPUTE, SEND, RECV, COLLECTIVE, WAIT = range(len(KINDS))


@dataclass(frozen=True)
class Columns:
    """The events of a recording, in order; every array has one element an event.

    Attributes
    ----------
    world_size : int
    whats : list of What
        What events have in common.
    what : array
        Which of `whats` an event is.
    kind : array
        As in `KINDS`.
    rank, launch, peer : array
    group : array
        A number for each group.
    bytes_out, bytes_in : array
    """

    world_size: int
    whats: list[What]
    what: Numbers
    kind: Numbers
    rank: Numbers
    launch: Numbers
    peer: Numbers
    group: Numbers
    bytes_out: Numbers
    bytes_in: Numbers

    def __len__(self) -> int:
        return len(self.what)

    def of(self, place: int) -> What:
        """What an event is."""
        return self.whats[int(self.what[place])]


def columns(recording: Timeline) -> Columns:
    """Take a recording apart."""
    log = EventLog.of(recording.events)
    what, rank, launch, peer, _ = log.rows.astype(np.int64).T
    groups: dict[tuple[int, ...], int] = {}
    common = [
        (KINDS.index(w.kind), groups.setdefault(w.group, len(groups)), w.bytes_out, w.bytes_in)
        for w in log.whats
    ]
    table = np.array(common, dtype=np.int64).reshape(-1, 4)
    kind, group, out, into = table[what].T
    return Columns(
        recording.world_size, log.whats, what, kind, rank, launch, peer, group, out, into
    )
