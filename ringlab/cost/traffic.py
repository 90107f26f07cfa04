"""Messages between ranks, as the closed forms of bytes give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Message(NamedTuple):
    """Bytes that one rank sends another in one launch, a hop of a ring or a collective."""

    launch: int
    sender: int
    receiver: int
    size: int


@dataclass(frozen=True)
class Traffic:
    """The messages of a call, none of them empty.

    A collective counts as the ring algorithm moves it: everything goes to the next rank.

    Parameters
    ----------
    messages : tuple of Message
    """

    messages: tuple[Message, ...]

    def bytes_sent(self, rank: int) -> int:
        """Bytes that a rank sends."""
        return sum(message.size for message in self.messages if message.sender == rank)

    def bytes_received(self, rank: int) -> int:
        """Bytes that a rank receives."""
        return sum(message.size for message in self.messages if message.receiver == rank)

    def total(self) -> int:
        """Bytes that all ranks send."""
        return sum(message.size for message in self.messages)

    def hops(self, rank: int) -> tuple[int, ...]:
        """Bytes that a rank sends in each launch in which it sends or receives, in order."""
        sent: dict[int, int] = {}
        for message in sorted(self.messages):
            if rank in (message.sender, message.receiver):
                size = message.size if message.sender == rank else 0
                sent[message.launch] = sent.get(message.launch, 0) + size
        return tuple(sent.values())

    def edges(self) -> dict[tuple[int, int], int]:
        """Bytes over each directed edge ``(from, to)``."""
        total: Counter[tuple[int, int]] = Counter()
        for message in self.messages:
            total[message.sender, message.receiver] += message.size
        return dict(total)

    def then(self, later: Traffic) -> Traffic:
        """Put another traffic behind this one."""
        start = 1 + max((message.launch for message in self.messages), default=-1)
        moved = (message._replace(launch=start + message.launch) for message in later.messages)
        return Traffic((*self.messages, *moved))


def handshake(world_size: int) -> Traffic:
    """What the ranks tell each other first if `length` is not given: 64 bytes to each other."""
    return ring_collective(world_size, 64)


def ring_collective(world_size: int, chunk: int) -> Traffic:
    """A ring all-gather or reduce-scatter: each rank passes on W-1 chunks."""
    size = (world_size - 1) * chunk
    return nonempty(Message(0, rank, (rank + 1) % world_size, size) for rank in range(world_size))


def nonempty(messages: Iterable[Message]) -> Traffic:
    """Make a traffic of the messages that carry something."""
    return Traffic(tuple(message for message in messages if message.size))
