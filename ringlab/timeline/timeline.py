"""What happened in a run: computing, messages, collectives and waits, rank by rank.

A :class:`Timeline` is what a world leaves behind. It holds what each rank did, in
the order in which it did it, with bytes, peers and source lines, and derives the
numbers that a lesson or a test asks for. That of a virtual world holds no clock: two runs
of one program give equal timelines. Real ranks, and a price, add times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ringlab.timeline.events import Event, EventKind


@dataclass(frozen=True)
class Timeline:
    """The record of one run.

    Parameters
    ----------
    world_size : int
    events : tuple of Event
        In the order in which the world saw them; within a rank, in issue order.
    """

    world_size: int
    events: tuple[Event, ...] = ()

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def of(self, rank: int, kind: EventKind | None = None) -> tuple[Event, ...]:
        """The events of one rank, in issue order, optionally of one kind."""
        self._check(rank)
        return tuple(e for e in self.events if e.rank == rank and kind in (None, e.kind))

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

    def _check(self, rank: int) -> None:
        if not 0 <= rank < self.world_size:
            raise ValueError(
                f"rank {rank} is not in this timeline; its ranks are 0 to {self.world_size - 1}."
            )
