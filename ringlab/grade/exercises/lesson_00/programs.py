"""Programs of blocking sends and receives as lists of words, and where they get stuck."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringlab.grade.case import Case

Waits = dict[int, int]
"""For each rank that is stuck, the rank for which it waits."""


class Step(NamedTuple):
    """One blocking operation: ``"send 1"`` or ``"recv 1"``."""

    word: str
    peer: int


Programs = Sequence[Sequence[Step]]


def programs(case: Case) -> list[list[Step]]:
    """The option ``programs``: for each rank its operations, in order."""
    found: list[list[Step]] = []
    texts = case.options["programs"]
    assert isinstance(texts, list)
    for own in texts:
        assert isinstance(own, list)
        pairs = (str(text).split() for text in own)
        found.append([Step(word, int(peer)) for word, peer in pairs])
    return found


def stuck(program: Programs, *, any_words: bool = False) -> Waits:
    """Run until nobody can go on: a send is over when its receiver stands at the receive for it.

    Which pair goes first makes no difference: each rank stands at one operation, which has one
    other end. With `any_words` two operations that name each other's rank meet, whatever they are.
    """
    at = [0] * len(program)
    while True:
        front = {rank: own[at[rank]] for rank, own in enumerate(program) if at[rank] < len(own)}
        met = [
            (rank, step.peer)
            for rank, step in front.items()
            if step.peer != rank and _meet(step, front.get(step.peer), rank, any_words)
        ]
        if not met:
            return {rank: step.peer for rank, step in front.items()}
        for rank in {rank for pair in met for rank in pair}:
            at[rank] += 1


def _meet(step: Step, other: Step | None, rank: int, any_words: bool) -> bool:
    if other is None or other.peer != rank:
        return False
    return any_words or (step.word, other.word) == ("send", "recv")


def stuck_with_buffers(program: Programs) -> Waits:
    """The same if a send were over at once, and its message kept until somebody receives it."""
    at, kept = [0] * len(program), list[tuple[int, int]]()
    moved = True
    while moved:
        moved = False
        for rank, own in enumerate(program):
            while at[rank] < len(own):
                word, peer = own[at[rank]]
                if word == "send":
                    kept.append((rank, peer))
                elif (peer, rank) in kept:
                    kept.remove((peer, rank))
                else:
                    break
                at[rank] += 1
                moved = True
    return {rank: own[at[rank]].peer for rank, own in enumerate(program) if at[rank] < len(own)}


def circles(waits: Waits) -> list[list[int]]:
    """The circles of ranks that wait for one another, each in order of the waits."""
    found: list[list[int]] = []
    for start in waits:
        path = [start]
        while path[-1] in waits and waits[path[-1]] not in path:
            path.append(waits[path[-1]])
        if waits.get(path[-1]) == start and start == min(path):
            found.append(path)
    return found


def upstream(waits: Waits) -> list[int]:
    """Ranks in a circle, and those whose wait leads to one."""
    inside = {rank for circle in circles(waits) for rank in circle}
    while True:
        more = {rank for rank, other in waits.items() if other in inside} - inside
        if not more:
            return sorted(inside)
        inside |= more
