"""What happened in a run: computing, messages, collectives and waits, rank by rank.

A :class:`Timeline` is what a world leaves behind. It holds what each rank did, in
the order in which it did it, with bytes, peers and source lines, and derives the
numbers that a lesson or a test asks for. That of a virtual world holds no clock: two runs
of one program give equal timelines. Real ranks, and a price, add times.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ringlab.timeline import chrome, storage
from ringlab.timeline.events import Event, EventKind


@dataclass(frozen=True)
class Timeline:
    """The record of one run.

    Parameters
    ----------
    world_size : int
    events : sequence of Event
        A tuple, or a log that reads like one. In the order in which the world saw them; within a
        rank, in issue order.
    began : float, optional
        Unix time of second 0 of a run on real ranks. Two timelines that differ in nothing else
        are equal.
    """

    world_size: int
    events: Sequence[Event] = ()
    began: float | None = field(default=None, compare=False)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    @cached_property
    def _by_rank(self) -> tuple[tuple[Event, ...], ...]:
        own: list[list[Event]] = [[] for _ in range(self.world_size)]
        for event in self.events:
            own[event.rank].append(event)
        return tuple(map(tuple, own))

    def of(self, rank: int, kind: EventKind | None = None) -> tuple[Event, ...]:
        """The events of one rank, in issue order, optionally of one kind."""
        self._check(rank)
        own = self._by_rank[rank]
        return own if kind is None else tuple(e for e in own if e.kind == kind)

    def bytes_sent(self, rank: int) -> int:
        """Bytes that `rank` sent, point-to-point and in collectives."""
        return sum(e.bytes_out for e in self.of(rank))

    def bytes_received(self, rank: int) -> int:
        """Bytes that `rank` received, point-to-point and in collectives."""
        return sum(e.bytes_in for e in self.of(rank))

    def hops(self, rank: int) -> tuple[int, ...]:
        """Bytes that `rank` sent in each launch that moved anything, in order.

        In a ring each hop is one batch, so this is the bytes of each hop.
        """
        sent: dict[int, int] = {}
        for e in self.of(rank):
            if e.kind != "wait" and e.bytes_out + e.bytes_in:
                sent[e.launch] = sent.get(e.launch, 0) + e.bytes_out
        return tuple(sent.values())

    def edges(self) -> dict[tuple[int, int], int]:
        """Bytes sent point-to-point over each directed edge ``(from, to)``."""
        total: Counter[tuple[int, int]] = Counter()
        for e in self.events:
            if e.kind == "send" and e.peer is not None:
                total[e.rank, e.peer] += e.bytes_out
        return dict(total)

    def count(self, kind: EventKind, rank: int | None = None) -> int:
        """Number of events of one kind, on one rank or on all."""
        return sum(1 for e in self.events if e.kind == kind and rank in (None, e.rank))

    def communication(self) -> Timeline:
        """The same run without what was computed and without times, rank after rank.

        What remains depends on the program alone, launches being numbered from 0 on each rank:
        a program has equal ones in the virtual world, on gloo and on NCCL.
        """
        events: list[Event] = []
        for own in self._by_rank:
            numbers: dict[int, int] = {}
            for e in own:
                if e.kind != "compute":
                    launch = numbers.setdefault(e.launch, len(numbers))
                    events.append(e._replace(launch=launch, start=None, end=None))
        return replace(self, events=tuple(events))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write this timeline to a JSON file, from which `load` makes an equal one."""
        return storage.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Timeline:
        """Read what `save` wrote.

        Raises
        ------
        ValueError
            If the file holds no timeline, or one of another version.
        """
        return cls(*storage.read(path))

    def to_chrome_trace(
        self,
        path: str | os.PathLike[str],
        *,
        profiles: Mapping[int, str | os.PathLike[str]] | None = None,
    ) -> Path:
        """Write a trace to look at in Perfetto (ui.perfetto.dev) or ``chrome://tracing``.

        Parameters
        ----------
        path : str or PathLike
        profiles : mapping of int to path, optional
            Traces that torch's profiler exported on some ranks: their operators and GPU
            kernels are shown below the lanes of the rank, on the same clock.

        Returns
        -------
        Path

        Raises
        ------
        NoClock
            If an event has no times.
        """
        return chrome.write(self, path, profiles)

    def _check(self, rank: int) -> None:
        if not 0 <= rank < self.world_size:
            raise ValueError(
                f"rank {rank} is not in this timeline; its ranks are 0 to {self.world_size - 1}."
            )
