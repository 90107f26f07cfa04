"""A recording as what each rank does, one thing after the other, and what belongs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ringlab.timeline import Timeline
from ringlab.timeline.matching import GroupNumbers, meetings, partners

COMPUTE, ISSUE, WAIT = 0, 1, 2


class Step(NamedTuple):
    """One thing a rank does.

    Attributes
    ----------
    what : {COMPUTE, ISSUE, WAIT}
    event : int
        Place of the event in the recording; for a launch that of its first operation.
    launch : int
        Number of the launch among those of all ranks; -1 for compute.
    """

    what: int
    event: int
    launch: int


@dataclass(frozen=True)
class Program:
    """A recording, taken apart once; times are computed from it any number of times.

    Attributes
    ----------
    world_size : int
    steps : tuple of tuple of Step
        Rank by rank, in issue order.
    launch_of : dict of int to int
        From the place of a communication event to its launch.
    rank_of : tuple of int
        Launch by launch, the rank that issues it.
    operations : tuple of tuple of int
        Launch by launch, its transfers.
    before : tuple of int
        Launch by launch, the one before it on the same rank in the same group; -1 if none.
    transfers : tuple of tuple of int
        Messages and collectives: the places of their events, a send before its receive.
    """

    world_size: int
    steps: tuple[tuple[Step, ...], ...]
    launch_of: dict[int, int]
    rank_of: tuple[int, ...]
    operations: tuple[tuple[int, ...], ...]
    before: tuple[int, ...]
    transfers: tuple[tuple[int, ...], ...]

    @property
    def last_of(self) -> dict[int, int]:
        """From a launch that nothing in its group comes before to the last one there."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for launch, before in enumerate(self.before):
            first[launch] = launch if before < 0 else first[before]
            last[first[launch]] = launch
        return last


def take_apart(recording: Timeline) -> Program:
    """Find launches, transfers and their order.

    Raises
    ------
    ValueError
        If a message or a collective of the recording has an end that is not in it.
    """
    transfers, transfer_of = _transfers(recording)
    steps: list[list[Step]] = [[] for _ in range(recording.world_size)]
    numbers: dict[tuple[int, int], int] = {}
    latest: dict[tuple[int, int], int] = {}
    groups = GroupNumbers()
    launch_of: dict[int, int] = {}
    rank_of: list[int] = []
    operations: list[list[int]] = []
    before: list[int] = []
    for place, event in enumerate(recording.events):
        rank, kind = event.rank, event.kind
        if kind == "compute":
            steps[rank].append(Step(COMPUTE, place, -1))
            continue
        key = rank, event.launch
        number = numbers.get(key, -1)
        if kind == "wait":
            if number >= 0:
                steps[rank].append(Step(WAIT, place, number))
            continue
        if number < 0:
            number = numbers[key] = len(operations)
            operations.append([])
            rank_of.append(rank)
            chain = rank, groups.of(event.group)
            before.append(latest.get(chain, -1))
            latest[chain] = number
            steps[rank].append(Step(ISSUE, place, number))
        launch_of[place] = number
        operations[number].append(transfer_of[place])
    return Program(recording.world_size, tuple(map(tuple, steps)), launch_of, tuple(rank_of),
                   tuple(map(tuple, operations)), tuple(before), transfers)  # fmt: skip


def _transfers(recording: Timeline) -> tuple[tuple[tuple[int, ...], ...], dict[int, int]]:
    """Messages and collectives with all their ends, in the order in which they began."""
    partner, meeting = partners(recording), meetings(recording)
    transfers: list[tuple[int, ...]] = []
    transfer_of: dict[int, int] = {}
    for place, event in enumerate(recording.events):
        kind = event.kind
        if kind == "compute" or kind == "wait" or place in transfer_of:
            continue
        if kind == "collective":
            ends = meeting[place]
            complete = len(ends) == len(event.group)
        else:
            other = partner.get(place)
            complete = other is not None
            ends = (place, other if other is not None else place)
            ends = ends[::-1] if kind == "recv" else ends
        if not complete:
            raise ValueError(
                f"the {event.name} of rank {event.rank} at {event.site} has no counterpart in the "
                "recording, so it has no price; record a run that ends well."
            )
        for end in ends:
            transfer_of[end] = len(transfers)
        transfers.append(ends)
    return tuple(transfers), transfer_of
