"""Which events belong together: the ends of a message, a collective's parts, a wait's operation."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlab.timeline.events import Event

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline


@dataclass(frozen=True)
class Matching:
    """Events by their place in ``timeline.events``.

    Attributes
    ----------
    partner : dict
        From a send to its receive, and back.
    meeting : dict
        From each part of a collective to the parts of all members, itself included.
    operation : dict
        From a wait to the operation that it waited for.
    """

    partner: dict[int, int]
    meeting: dict[int, tuple[int, ...]]
    operation: dict[int, int]

    def ends(self, place: int) -> tuple[int, ...]:
        """Both ends of a message or all parts of a collective, as far as the timeline has them."""
        if place in self.meeting:
            return self.meeting[place]
        return (place, self.partner[place]) if place in self.partner else (place,)


def match(timeline: Timeline) -> Matching:
    """Find what belongs together.

    Notes
    -----
    The k-th send over a directed edge of a group belongs to its k-th receive; where sizes
    differ, as messages with tags may overtake one another, to the first receive of its size.
    The k-th collective of a name and group on one member belongs to the k-th on the others.
    """
    return Matching(partners(timeline), meetings(timeline), _operations(timeline))


class GroupNumbers:
    """A small number for each group: hashing a group of many ranks for each event would not do.

    The events of one run share the tuples of their groups, so most are known by identity; equal
    ones get the same number. Use it while the events are kept.
    """

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_ranks: dict[tuple[int, ...], int] = {}

    def of(self, group: tuple[int, ...]) -> int:
        """The number of a group."""
        number = self._by_identity.get(id(group))
        if number is None:
            number = self._by_ranks.setdefault(group, len(self._by_ranks))
            self._by_identity[id(group)] = number
        return number


def partners(timeline: Timeline) -> dict[int, int]:
    """From the place of each send to that of its receive, and back; see `match`."""
    groups = GroupNumbers()
    open_: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    partner: dict[int, int] = {}
    for place, event in enumerate(timeline.events):
        if event.kind not in ("send", "recv") or event.peer is None:
            continue
        sends = event.kind == "send"
        ends = (event.rank, event.peer) if sends else (event.peer, event.rank)
        size = event.bytes_out if sends else event.bytes_in
        group = groups.of(event.group)
        mine, theirs = (group, *ends, size, sends), (group, *ends, size, not sends)
        if open_[theirs]:
            other = open_[theirs].pop(0)
            partner[place], partner[other] = other, place
        else:
            open_[mine].append(place)
    return partner


def meetings(timeline: Timeline) -> dict[int, tuple[int, ...]]:
    """From the place of each part of a collective to those of all parts; see `match`."""
    groups = GroupNumbers()
    counts: defaultdict[tuple[object, ...], int] = defaultdict(int)
    parts: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, event in enumerate(timeline.events):
        if event.kind == "collective":
            group = groups.of(event.group)
            one = event.rank, group, event.name
            parts[group, event.name, counts[one]].append(place)
            counts[one] += 1
    return {place: tuple(places) for places in parts.values() for place in places}


def _operations(timeline: Timeline) -> dict[int, int]:
    issued: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    operation: dict[int, int] = {}
    waited: set[int] = set()
    events = timeline.events
    for place, event in enumerate(events):
        launch = event.rank, event.launch
        if event.kind in ("send", "recv", "collective"):
            issued[launch].append(place)
        elif event.kind == "wait" and issued[launch]:

            def fit(candidate: int, wait: Event = event) -> tuple[bool, bool, bool]:
                op = events[candidate]
                return op.name != wait.name, op.peer != wait.peer, candidate in waited

            operation[place] = min(issued[launch], key=fit)
            waited.add(operation[place])
    return operation
