"""What crosses the links: messages with both their ends, and collectives with all of theirs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringlab.price.columns import COLLECTIVE, RECV, SEND, Columns, Numbers


@dataclass(frozen=True)
class Transfers:
    """Messages and collectives, in the order in which they began.

    Attributes
    ----------
    ends : array
        Places of events, those of one transfer side by side; a send before its receive.
    first : array
        Where in `ends` each transfer begins.
    """

    ends: Numbers
    first: Numbers

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lead(self) -> Numbers:
        """The place of each transfer's first end: of a message its send."""
        return self.ends[self.first]

    @property
    def of_end(self) -> Numbers:
        """To which transfer each of `ends` belongs."""
        counts = np.diff(self.first, append=len(self.ends))
        return np.repeat(np.arange(len(self)), counts)

    def parts(self, number: int) -> Numbers:
        """The ends of one transfer."""
        last = self.first[number + 1] if number + 1 < len(self) else len(self.ends)
        return self.ends[self.first[number] : last]


def transfers(events: Columns) -> Transfers:
    """Find what belongs together, as ``ringlab.timeline.matching`` does.

    Raises
    ------
    ValueError
        If a message or a collective has an end that is not in the recording; it names the
        first of these by its number, see `Incomplete`.
    """
    sends, recvs = _messages(events)
    meetings = _collectives(events)
    sizes = np.array([2] * len(sends) + [len(parts) for parts in meetings], dtype=np.int64)
    flat = [np.column_stack([sends, recvs]).ravel(), *map(np.asarray, meetings)]
    ends = np.concatenate(flat).astype(np.int64)
    first = np.cumsum(sizes) - sizes
    began = np.minimum.reduceat(ends, first) if len(first) else first
    order = np.argsort(began, kind="stable")
    return Transfers(*_reordered(ends, first, sizes, order))


class Incomplete(ValueError):
    """An end of a message or a collective that has no counterpart.

    Parameters
    ----------
    place : int
        Of the event.
    """

    def __init__(self, place: int) -> None:
        self.place = place
        super().__init__(place)


def _messages(events: Columns) -> tuple[Numbers, Numbers]:
    """Sends and their receives: the k-th of an edge, group and size to the k-th there."""
    is_send, is_recv = events.kind == SEND, events.kind == RECV
    size = np.where(is_send, events.bytes_out, events.bytes_in)
    _, size = np.unique(size, return_inverse=True)
    source = np.where(is_send, events.rank, events.peer)
    target = np.where(is_send, events.peer, events.rank)
    world, kinds = events.world_size, int(size.max(initial=0)) + 1
    key = ((events.group * world + source) * world + target) * kinds + size
    sends, send_keys = _in_order(key, is_send & (events.peer >= 0))
    recvs, recv_keys = _in_order(key, is_recv & (events.peer >= 0))
    strangers = np.flatnonzero((is_send | is_recv) & (events.peer < 0))
    if len(sends) != len(recvs) or not np.array_equal(send_keys, recv_keys) or len(strangers):
        left = _unpaired(sends, send_keys, recvs, recv_keys)
        raise Incomplete(min([*left, *strangers.tolist()]))
    return sends, recvs


def _in_order(key: Numbers, chosen: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    places = np.flatnonzero(chosen)
    order = np.argsort(key[places], kind="stable")
    return places[order], key[places][order]


def _unpaired(sends: Numbers, send_keys: Numbers, recvs: Numbers, recv_keys: Numbers) -> list[int]:
    """Places of the messages that have no other end."""
    left: defaultdict[int, list[list[int]]] = defaultdict(lambda: [[], []])
    for which, (places, keys) in enumerate(((sends, send_keys), (recvs, recv_keys))):
        for place, key in zip(places.tolist(), keys.tolist(), strict=True):
            left[key][which].append(place)
    return [
        place
        for out, into in left.values()
        for place in (*out[len(into) :], *into[len(out) :])
    ]  # fmt: skip


def _collectives(events: Columns) -> list[list[int]]:
    """The k-th collective of a name and group on one member belongs to the k-th on the others."""
    counts: defaultdict[tuple[int, int, str], int] = defaultdict(int)
    parts: defaultdict[tuple[int, str, int], list[int]] = defaultdict(list)
    for place in np.flatnonzero(events.kind == COLLECTIVE).tolist():
        group, name = int(events.group[place]), events.of(place).name
        one = int(events.rank[place]), group, name
        parts[group, name, counts[one]].append(place)
        counts[one] += 1
    lacking = [p[0] for p in parts.values() if len(p) != len(events.of(p[0]).group)]
    if lacking:
        raise Incomplete(min(lacking))
    return list(parts.values())


def _reordered(ends: Numbers, first: Numbers, sizes: Numbers, order: Numbers
               ) -> tuple[Numbers, Numbers]:  # fmt: skip
    """The same transfers in another order."""
    sizes = sizes[order]
    begins = np.cumsum(sizes) - sizes
    inside = np.arange(len(ends)) - np.repeat(begins, sizes)
    return ends[np.repeat(first[order], sizes) + inside], begins
