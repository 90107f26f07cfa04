"""The report on ranks that can never go on: the cycle, or the rank that left, with lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ringlab.world.errors import Deadlock, PeerLeft, Wait, WorldError
from ringlab.world.source import Site
from ringlab.world.virtual.operations import Launch, Operation
from ringlab.world.virtual.waiting import Prospect, WaitGraph

Place = Launch | int
"""Where a walk stands: a launch that never finishes, or a rank that never goes on."""


@dataclass(frozen=True)
class Step:
    """One rank of a report: why it needs another rank to do something first.

    Attributes
    ----------
    rank, other : int
    lines : tuple of str
        What to show of `rank`, most important first.
    there : Place
        What does not go on at `other`.
    op : Operation
        The operation of `rank` that lacks something of `other`.
    """

    rank: int
    other: int
    lines: tuple[str, ...]
    there: Place
    op: Operation


def report(graph: WaitGraph, stuck: int, wait_sites: dict[int, Site]) -> WorldError:
    """Say why a rank that waits will never go on.

    Parameters
    ----------
    graph : WaitGraph
    stuck : int
        A rank that waits in vain.
    wait_sites : dict
        For each blocked rank the line at which it waits.
    """
    way, cycle = _Trail(graph, wait_sites).follow(stuck)
    return _deadlock(cycle, way) if cycle else _peer_left(way)


class _Trail:
    """Walks from what waits to what it waits for, among what never comes."""

    def __init__(self, graph: WaitGraph, wait_sites: dict[int, Site]) -> None:
        self.graph, self.board = graph, graph.board
        self.prospect = Prospect(graph)
        self.wait_sites = wait_sites

    def follow(self, start: int) -> tuple[list[Step], list[Step]]:
        """The way to a cycle, and the cycle; or else the way to a rank that left, and nothing."""
        stack: list[tuple[Place, list[Step], list[Place]]] = [(start, [], [])]
        seen: set[Place] = {start}
        way_out: list[Step] = []
        while stack:
            place, steps, places = stack.pop()
            places = [*places, place]
            for step in reversed(list(self._steps(place))):
                trail = [*steps, step]
                if step.there in places:
                    place_in_trail = places.index(step.there)
                    return trail[:place_in_trail], trail[place_in_trail:]
                if step.there in self.graph.returned:
                    way_out = way_out if way_out and len(way_out) <= len(trail) else trail
                elif step.there not in seen:
                    seen.add(step.there)
                    stack.append((step.there, trail, places))
        return way_out, []

    def _steps(self, place: Place) -> Iterator[Step]:
        if isinstance(place, Launch):
            for op in place.operations:
                yield from self._beyond(op, (f"(not waiting yet) {op}",))
            return
        op, ahead = self.graph.waiting[place], self._blocks(place)
        shown = [str(op)]
        site = self.wait_sites.get(place)
        if site is not None and site != op.site:
            shown.append(f"waits at {site}")
        if ahead is not None and ahead is not op.launch:
            for part in ahead.operations:
                yield from self._beyond(part, (*shown, f"behind its own earlier {part}"))
            return
        for part in op.launch.operations if op.launch.whole else [op]:
            also = [] if part is op else [f"in one batch with {part}"]
            yield from self._beyond(part, (*shown, *also))

    def _blocks(self, rank: int) -> Launch | None:
        """What a rank that waits stands behind: the first launch in line that never finishes."""
        op = self.graph.waiting[rank]
        return self.prospect.held_up(op.group, rank)

    def _beyond(self, op: Operation, shown: tuple[str, ...]) -> Iterator[Step]:
        """What an operation lacks and never gets."""
        for rank, part in self.board.lacks(op):
            if self.prospect.provides(op.group, rank, part):
                continue
            if part is None and rank not in self.prospect.alive:
                yield Step(op.rank, rank, shown, rank, op)
                continue
            ahead = self.prospect.held_up(op.group, rank)
            assert ahead is not None, "what will not be provided is held up"
            waits_here = rank in self.graph.waiting and self._blocks(rank) is ahead
            where = (
                f"whatever rank {rank} posts next stands behind an earlier operation of its own"
                if part is None
                else f"rank {rank} has posted its end behind an earlier operation: {part}"
            )
            there = rank if waits_here else ahead
            yield Step(op.rank, rank, (*shown, where), there, op)


def _deadlock(cycle: list[Step], way: list[Step]) -> Deadlock:
    first = min(range(len(cycle)), key=lambda i: cycle[i].rank)
    cycle = cycle[first:] + cycle[:first]
    chain = " -> ".join(str(step.rank) for step in [*cycle, cycle[0]])
    whom = f"rank {chain[0]} waits for itself" if len(cycle) == 1 else "ranks wait for one another"
    behind = f"Behind them:\n{_shown(way)}\n" if way else ""
    error = Deadlock(f"{whom}: {chain}\n{_shown(cycle)}\n{behind}{_advice(cycle)}")
    error.cycle = tuple(step.rank for step in cycle)
    error.waits = _waits([*cycle, *way])
    return error


def _peer_left(trail: list[Step]) -> PeerLeft:
    gone = trail[-1].other
    error = PeerLeft(
        f"rank {gone} has returned, and will never do its part:\n{_shown(trail)}\n"
        "Every send needs a receive on the other side and every receive a send, and all members "
        "of a group must make each of its collective calls."
    )
    error.waits = _waits(trail)
    return error


def _waits(steps: list[Step]) -> tuple[Wait, ...]:
    return tuple(Wait(s.rank, s.other, s.op.what, s.op.site.place) for s in steps)


def _shown(steps: list[Step]) -> str:
    lines = []
    for step in steps:
        head, *more = step.lines
        lines.append(f"  rank {step.rank} waits for rank {step.other}: {head}")
        lines += [f"      {line}" for line in more]
    return "\n".join(lines)


def _advice(cycle: list[Step]) -> str:
    operations = [step.op for step in cycle]
    advice = ["None of them can go on before another does."]
    if any(op.kind != "collective" for op in operations):
        advice.append(
            "Post the receive together with the send (batch_isend_irecv) and wait for both "
            "afterwards."
        )
    if any(op.kind == "collective" for op in operations):
        advice.append(
            "Let all members of a group make its collective calls in one order, the same as their "
            "calls on other groups."
        )
    if len({op.group for op in operations if op.name == "new_group"}) > 1:
        advice.append(
            "Torch names a group that is made with use_local_synchronization=True by its ranks and "
            "by how many groups a rank has: have the same number everywhere when making one."
        )
    return "\n".join(advice)
