"""What a rank did and when: the notes that become its part of the timeline.

Operations and waits are noted as they pass. What lies between two of them is computing, by
derivation: the rank ran its program. Regions of the program divide it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringlab.timeline import Event, EventKind
from ringlab.timeline.regions import current_label, labels_of_thread
from ringlab.world.processes.clocks import Clock
from ringlab.world.processes.entries import Entry
from ringlab.world.source import Site, site_in_rank, site_of

EVENT_LIMIT = 100_000
"""Events a rank keeps in one run; a long training run would fill the memory with them."""

LEAST_COMPUTE = 50e-6
"""Seconds that unlabelled computing must last: less is the interpreter between two calls."""

START = Site("", 0, "")


@dataclass(frozen=True)
class Recording:
    """What a rank's part of a timeline is made from.

    Attributes
    ----------
    events : list of Event
        In the order in which they began; times in seconds of the monotonic clock.
    began : float or None
        When the rank called the program, on the same clock.
    truncated : bool
        Whether the rank did more than `events` holds.
    """

    events: list[Event]
    began: float | None = None
    truncated: bool = False


@dataclass(eq=False, slots=True)
class _Note:
    kind: EventKind
    entry: Entry | None  # None for computing
    site: Site
    label: str
    start: Any
    end: Any = None


class Recorder:
    """Notes what one rank does in one run.

    Parameters
    ----------
    rank : int
    clock : Clock
    """

    def __init__(self, rank: int, clock: Clock) -> None:
        self.rank, self.clock = rank, clock
        self.begin()

    def begin(self) -> None:
        """Forget the last run; called where the program will be."""
        self.truncated = False
        self._labels = labels_of_thread()
        self._notes: list[_Note] = []
        self._of: dict[Entry, _Note] = {}
        self._began: Any = None
        self._computes_since: Any = None
        self._computes_at = START

    def start(self) -> None:
        """Note that the program is called now."""
        self.clock.begin()
        self._began = self.clock.mark()
        self.computes(self._began, START)

    def stop(self) -> None:
        """Note that the program has returned."""
        self.interrupt()

    def computes(self, since: Any, site: Site) -> None:
        """From this mark on the rank computes, unless something comes at once."""
        if self._began is not None:
            self._computes_since, self._computes_at = since, site

    def interrupt(self) -> Any:
        """The rank stops computing, for a call or a region; returns the mark of this moment."""
        now = self.clock.mark()
        if self._computes_since is not None:
            since, self._computes_since = self._computes_since, None
            self._add(_Note("compute", None, self._computes_at, self._label(), since, now))
        return now

    def boundary(self) -> None:
        """Divide computing: a region begins or ends in the caller's caller."""
        if self._computes_since is not None:
            self.computes(self.interrupt(), site_of(sys._getframe(2)))

    def issue(self, entry: Entry, at: Any) -> None:
        """Note an operation, which began at a mark."""
        note = _Note(entry.operation.kind, entry, entry.site, self._label(), at)
        if self._add(note):
            self._of[entry] = note

    def arrived(self, entry: Entry) -> None:
        """Note that an operation is over as far as the rank knows."""
        note = self._of.pop(entry, None)
        if note is not None:
            note.end = self.clock.mark()

    def waits(self, entries: Sequence[Entry]) -> list[Any]:
        """Note that the rank waits from now on; give the notes to `waited`."""
        now, site = self.interrupt(), site_in_rank()
        notes = [_Note("wait", entry, site, self._label(), now) for entry in entries]
        return [note for note in notes if self._add(note)]

    def waited(self, notes: Sequence[Any]) -> None:
        """Note that the wait is over, and with it what it waited for."""
        now = self.clock.mark()
        for note in notes:
            note.end = now
            operation = self._of.pop(note.entry, None)
            if operation is not None:
                operation.end = now

    def resume(self, site: Site) -> None:
        """Go on computing, after a call at `site`."""
        self.computes(self.clock.mark(), site)

    def recording(self) -> Recording:
        """What was done so far; may be asked from another thread."""
        began = None if self._began is None else self.clock.seconds(self._began)
        events = [event for note in list(self._notes) if (event := self._event(note)) is not None]
        return Recording(events, began, self.truncated)

    def _label(self) -> str:
        """The innermost region; in a thread of autograd's that has none, the program's."""
        return current_label() or (self._labels[-1] if self._labels else "")

    def _add(self, note: _Note) -> bool:
        if len(self._notes) >= EVENT_LIMIT:
            self.truncated = True
            return False
        self._notes.append(note)
        return True

    def _event(self, note: _Note) -> Event | None:
        start, end = self._seconds(note.start), self._seconds(note.end)
        if note.entry is None:
            short = start is None or end is None or end - start < LEAST_COMPUTE
            if short and not (note.label and end is not None):
                return None
            return Event(self.rank, "compute", "compute", -1, (), None, 0, 0, (), "",
                         "" if note.site is START else note.site.place, label=note.label,
                         start=start, end=end)  # fmt: skip
        entry, op = note.entry, note.entry.operation
        if note.kind == "wait":
            peer = None if op.peer is None else entry.peer
            return Event(self.rank, "wait", op.name, entry.launch, entry.ranks, peer, 0, 0, (), "",
                         note.site.place, label=note.label, start=start, end=end)  # fmt: skip
        return Event(self.rank, note.kind, op.name, entry.launch, entry.ranks, entry.peer,
                     op.sent, op.received, op.shape, op.dtype, note.site.place,
                     label=note.label, start=start, end=end)  # fmt: skip

    def _seconds(self, mark: Any) -> float | None:
        return None if mark is None else self.clock.seconds(mark)
