"""A compact store of a run's events: what recurs is kept once, and the rest as numbers.

A ring of a thousand ranks leaves six million events. As objects they would fill gigabytes, and
the garbage collector would look at all of them again and again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ringlab.timeline.events import Event, EventKind, Work

NONE = -1
"""Stands in a row for no peer."""

COLUMNS = ("what", "rank", "launch", "peer", "step")
_ROW = struct.Struct(f"={len(COLUMNS)}i")
_PEER = struct.Struct("=i")
_PEER_AT = _PEER.size * COLUMNS.index("peer")


class What(NamedTuple):
    """What many events have in common; the fields are those of `Event`."""

    kind: EventKind
    name: str
    group: tuple[int, ...]
    bytes_out: int
    bytes_in: int
    shape: tuple[int, ...]
    dtype: str
    site: str
    label: str
    work: Work | None


class Times(NamedTuple):
    """When each event began and ended, in seconds."""

    start: NDArray[np.float64]
    end: NDArray[np.float64]


class EventLog(Sequence[Event]):
    """The events of a run, in order; reads like a tuple of `Event`, which it makes when read.

    Attributes
    ----------
    whats : list of What
        What a row's first number refers to.
    times : Times or None
    """

    def __init__(self) -> None:
        self.whats: list[What] = []
        self.times: Times | None = None
        self._rows = bytearray()

    # ---- writing -------------------------------------------------------------------------

    def describe(self, what: What) -> int:
        """Keep what some events have in common; give the number that rows call it by."""
        self.whats.append(what)
        return len(self.whats) - 1

    def add(self, what: int, rank: int, launch: int, peer: int, step: int) -> None:
        """Add an event at the end; `peer` may be `NONE`."""
        self._rows += _ROW.pack(what, rank, launch, peer, step)

    def set_peer(self, place: int, peer: int) -> None:
        """Say afterwards who is at the other end of a message."""
        _PEER.pack_into(self._rows, place * _ROW.size + _PEER_AT, peer)

    def timed(self, times: Times) -> EventLog:
        """The same events with times."""
        log = EventLog()
        log.whats, log._rows, log.times = self.whats, self._rows, times
        return log

    # ---- reading -------------------------------------------------------------------------

    @classmethod
    def of(cls, events: Sequence[Event]) -> EventLog:
        """The log of some events, times left out; itself if it is one."""
        if isinstance(events, EventLog):
            return events
        log = cls()
        numbers: dict[What, int] = {}
        for event in events:
            what = What(event.kind, event.name, event.group, event.bytes_out, event.bytes_in,
                        event.shape, event.dtype, event.site, event.label, event.work)  # fmt: skip
            number = numbers.get(what)
            if number is None:
                number = numbers[what] = log.describe(what)
            peer = NONE if event.peer is None else event.peer
            log.add(number, event.rank, event.launch, peer, event.step)
        return log

    @classmethod
    def joined(cls, logs: Sequence[EventLog]) -> EventLog:
        """The events of several logs, one after the other, times left out."""
        whole = cls()
        numbers: dict[What, int] = {}
        for log in logs:
            for what in log.whats:
                if what not in numbers:
                    numbers[what] = whole.describe(what)
            rows = log.rows.copy()
            rows[:, 0] = np.array([numbers[what] for what in log.whats], np.int32)[rows[:, 0]]
            whole._rows += rows.tobytes()
        return whole

    @property
    def rows(self) -> NDArray[np.int32]:
        """The numbers of every event, [events, 5] in the order of `COLUMNS`."""
        return np.frombuffer(bytes(self._rows), dtype=np.int32).reshape(-1, len(COLUMNS))

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Every event as an object."""
        made = []
        whats = self.whats
        times = (
            iter([])
            if self.times is None
            else zip(*map(np.ndarray.tolist, self.times), strict=True)
        )
        for number, rank, launch, peer, step in _ROW.iter_unpack(bytes(self._rows)):
            w = whats[number]
            start, end = next(times, (None, None))
            made.append(
                Event(rank, w.kind, w.name, launch, w.group, None if peer == NONE else peer,
                      w.bytes_out, w.bytes_in, w.shape, w.dtype, w.site, step, w.label, start, end,
                      w.work)
            )  # fmt: skip
        return tuple(made)

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Event, ...]: ...

    def __getitem__(self, place: int | slice) -> Event | tuple[Event, ...]:
        return self.events[place]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, EventLog):
            return self.events == other.events
        return self.events == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.events)

    def __repr__(self) -> str:
        return repr(self.events)

    def __reduce__(self) -> Any:
        return _restore, (self.whats, bytes(self._rows), self.times)


def _restore(whats: list[What], rows: bytes, times: Times | None) -> EventLog:
    log = EventLog()
    log.whats, log._rows, log.times = whats, bytearray(rows), times
    return log
