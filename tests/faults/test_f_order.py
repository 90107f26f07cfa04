"""F: ranks ask for the same messages in the same order, and wait for each exactly once."""

from __future__ import annotations

from collections import Counter, defaultdict

from ringlab import Timeline, World
from ringlab.timeline import Event
from tests.faults.drawn import Problem, problems, search, two_tiers
from tests.prefill.cases import (
    same_bits,
    step,
)


def recorded(problem: Problem, order: str) -> tuple[list, Timeline]:
    """The results of a forward and a backward under the rules of NCCL or of gloo."""
    world = World(problem.size, order=order)
    parts = world.run(step, problem.method, problem.inputs(), problem.layout, **problem.options)
    return parts, world.timeline.communication()


def check_waits(timeline: Timeline) -> None:
    """Each launch is waited for exactly once, and no two kinds are under way together."""
    for rank in range(timeline.world_size):
        issued, under_way = Counter(), Counter()
        for event in timeline.of(rank):
            kind = "collective" if event.name not in ("send", "recv") else "message"
            done = event.kind == "wait"
            issued[event.launch] += -1 if done else 1
            under_way[kind] += -1 if done else 1
            assert min(issued.values()) >= 0
            assert not (under_way["collective"] and under_way["message"])
        assert not +issued


def hops(timeline: Timeline, rank: int) -> dict[int, list[Event]]:
    """The messages of a rank, launch by launch."""
    found = defaultdict(list)
    for event in timeline.of(rank):
        if event.kind in ("send", "recv"):
            found[event.launch].append(event)
    return found


def check_batches(timeline: Timeline) -> None:
    """A hop is one small batch with sends before receives; what is sent is what is received."""
    sent, received = defaultdict(list), defaultdict(list)
    for rank in range(timeline.world_size):
        for events in hops(timeline, rank).values():
            kinds = [event.kind for event in events]
            assert kinds == sorted(kinds, reverse=True)
            assert len(events) <= 4
            for event in events:
                if event.kind == "send":
                    sent[rank, event.peer].append(event.bytes_out)
                else:
                    received[event.peer, rank].append(event.bytes_in)
    assert sent == received


def check_order(problem: Problem) -> None:
    stream, host = (recorded(problem, order) for order in ("stream", "host"))
    assert all(same_bits(*pair) for pair in zip(stream[0], host[0], strict=True))
    assert stream[1] == host[1]
    if problem.size == 1:
        assert len(stream[1]) == 0
    check_waits(stream[1])
    check_batches(stream[1])
    per_rank = [
        [e.name for e in stream[1].of(rank) if e.kind == "collective"]
        for rank in range(problem.size)
    ]
    assert all(names == per_rank[0] for names in per_rank)


@two_tiers(few=10, many=150)
def test_any_problem_sends_in_one_order_and_waits_for_each_message_once(examples: int) -> None:
    search(problems(), check_order, examples)
