"""A recording as what each rank does, one thing after the other, and what belongs together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ringlab.price.columns import COMPUTE, WAIT, Columns, Numbers, columns
from ringlab.price.transfers import Incomplete, Transfers, transfers
from ringlab.timeline import Timeline


@dataclass(frozen=True)
class Launches:
    """What ranks issue at once, numbered in the order in which they began.

    Attributes
    ----------
    event : array
        Place of the first event of each.
    before : array
        The one before it on the same rank in the same group; -1 if none.
    of_event : array
        For each event of the recording its launch, for a wait that which it waits for; -1 for
        compute, and for a wait for what the recording does not hold.
    """

    event: Numbers
    before: Numbers
    of_event: Numbers

    def __len__(self) -> int:
        return len(self.event)

    @cached_property
    def ends_of_chains(self) -> tuple[Numbers, Numbers]:
        """The launches that nothing in their group comes before, and the last ones after them."""
        head = np.arange(len(self))
        for launch, before in enumerate(self.before.tolist()):
            if before >= 0:
                head[launch] = head[before]
        last = np.zeros(len(self), dtype=np.int64)
        last[head] = np.arange(len(self))  # the last assignment counts
        heads = np.flatnonzero(self.before < 0)
        return heads, last[heads]


@dataclass(frozen=True)
class Program:
    """A recording, taken apart once; times are computed from it any number of times.

    Attributes
    ----------
    events : Columns
    transfers : Transfers
    launches : Launches
    by_rank : array
        Places of all events, rank after rank, in issue order.
    base : array
        Event by event, the place of the last wait before it on its rank; where there is none,
        minus 1 minus the rank.
    """

    events: Columns
    transfers: Transfers
    launches: Launches
    by_rank: Numbers
    base: Numbers

    @property
    def world_size(self) -> int:
        """How many ranks."""
        return self.events.world_size

    @cached_property
    def waits(self) -> Numbers:
        """Places of the waits for launches of the recording."""
        return np.flatnonzero((self.events.kind == WAIT) & (self.launches.of_event >= 0))

    @cached_property
    def last_waits(self) -> Numbers:
        """Rank by rank, the place of the last wait; without one, minus 1 minus the rank."""
        last = -1 - np.arange(self.world_size)
        waits = self.by_rank[np.isin(self.by_rank, self.waits, assume_unique=True)]
        last[self.events.rank[waits]] = waits
        return last


def take_apart(recording: Timeline) -> Program:
    """Find launches, transfers and their order.

    Raises
    ------
    ValueError
        If a message or a collective of the recording has an end that is not in it.
    """
    events = columns(recording)
    try:
        moving = transfers(events)
    except Incomplete as lonely:
        what, rank = events.of(lonely.place), events.rank[lonely.place]
        raise ValueError(
            f"the {what.name} of rank {rank} at {what.site} has no counterpart in the "
            "recording, so it has no price; record a run that ends well."
        ) from None
    launches = _launches(events)
    by_rank = np.argsort(events.rank, kind="stable")
    return Program(events, moving, launches, by_rank, _bases(events, launches, by_rank))


def _launches(events: Columns) -> Launches:
    posts = np.flatnonzero((events.kind != COMPUTE) & (events.kind != WAIT))
    width = int(events.launch.max(initial=0)) + 2
    key = events.rank * width + events.launch
    keys, first, inverse = np.unique(key[posts], return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # by what came first, not by rank
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    of_event = np.full(len(events), -1, dtype=np.int64)
    of_event[posts] = number[inverse]
    event = posts[first[order]]
    waits = np.flatnonzero(events.kind == WAIT)
    if len(keys):
        found = np.minimum(np.searchsorted(keys, key[waits]), len(keys) - 1)
        launch = number[found]
        known = (keys[found] == key[waits]) & (event[launch] < waits)
        of_event[waits[known]] = launch[known]
    return Launches(event, _before(events, event), of_event)


def _before(events: Columns, event: Numbers) -> Numbers:
    chain = events.rank[event] * (int(events.group.max(initial=0)) + 1) + events.group[event]
    order = np.argsort(chain, kind="stable")
    follows = np.diff(chain[order], prepend=-1) == 0
    before = np.full(len(event), -1, dtype=np.int64)
    before[order[follows]] = order[np.flatnonzero(follows) - 1]
    return before


def _bases(events: Columns, launches: Launches, by_rank: Numbers) -> Numbers:
    rank = events.rank[by_rank]
    waits = (events.kind[by_rank] == WAIT) & (launches.of_event[by_rank] >= 0)
    place = np.arange(len(by_rank))
    begins = np.diff(rank, prepend=-1) != 0
    # of each place the last one before it, in its rank, that is a wait
    marks = np.where(waits, place, -1)
    before = np.maximum.accumulate(np.append(-1, marks)[:-1]) if len(by_rank) else marks
    begin = np.maximum.accumulate(np.where(begins, place, -1)) if len(by_rank) else marks
    inside = before >= begin
    base = np.empty(len(by_rank), dtype=np.int64)
    base[by_rank] = np.where(inside, by_rank[np.maximum(before, 0)], -1 - rank)
    return base
