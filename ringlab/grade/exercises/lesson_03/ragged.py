"""Rings over shards of any length: how they are run, and how many tokens travel in which hop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Outcome
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.looks import collective_names, hops_text
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.plain import Plain

Tokens = Callable[[list[int], int, int], int]
"""Tokens of a block: ``tokens(lengths, rank, step)``."""


def observe(answer: Any, case: Case) -> Observation:
    """Call ``answer(q, k, v, lengths)`` on every rank."""
    held = list[Plain](ring.lengths(case))
    return on_ranks(answer, [(*shard, held) for shard in ring.shards(case)])


def token_bytes(case: Case) -> int:
    """Bytes of the K and V of one token."""
    _, k, v = ring.inputs(case)
    return (k.nbytes + v.nbytes) // k.shape[2]


def sent(lengths: list[int], rank: int, step: int) -> int:
    """Tokens that a rank sends after a step, counted from 0: those of the block in hand."""
    return lengths[(rank - step) % len(lengths)]


def needed(lengths: list[int], rank: int, step: int) -> int:
    """The same where the block goes no further than to the last rank that has a query."""
    size = len(lengths)
    owner = (rank - step) % size
    asks = any(lengths[(owner + distance) % size] for distance in range(step + 1, size))
    return lengths[owner] if asks else 0


def hops_of(case: Case, rank: int, tokens: Tokens) -> tuple[int, ...]:
    """Bytes of each of the W - 1 hops of a rank, without those of nothing."""
    held, one = ring.lengths(case), token_bytes(case)
    sizes = (one * tokens(held, rank, step) for step in range(case.world_size - 1))
    return tuple(size for size in sizes if size)


def made(seen: Observation, rank: int) -> tuple[int, ...]:
    """Bytes of each hop that a rank made, without those of nothing."""
    return tuple(size for size in seen.timeline.hops(rank) if size)


def hops(case: Case, seen: Observation) -> Outcome:
    """Each hop has the size of its block; one that nobody needs may be left out."""
    for rank in range(case.world_size):
        wanted, got = hops_of(case, rank, sent), made(seen, rank)
        names = collective_names(seen.timeline, rank)
        if names or got not in (wanted, hops_of(case, rank, needed)):
            also = f", and called {', '.join(names)}" if names else ""
            return Outcome(
                False,
                f"rank {rank} sends {hops_text(wanted)}, in messages",
                f"rank {rank} sent {hops_text(got)}{also}",
            )
    return Outcome(True, "hops of the sizes of their blocks", "hops of the sizes of their blocks")
