"""The ring on a group of ranks, whose numbers are not those of the world."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import torch

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.looks import Hops, hops, results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain
from ringlab.grade.shows import any_of, collects, fails
from ringlab.timeline import Event

STRAY = re.compile(r"rank (\d+) failed: ValueError: Global rank (\d+) is not part of group")


def _observe(answer: Any, case: Case) -> Observation:
    return on_ranks(answer, ring.shards(case), groups=ring.groups(case))


@lru_cache(maxsize=64)
def _right(case: Case) -> tuple[Plain, ...]:
    """Attention to the keys of the own group; None from a rank outside."""
    each = ring.shards(case)
    outs: list[Plain] = [None] * case.world_size
    for group in ring.groups(case):
        q, k, v = (torch.cat([each[rank][part] for rank in group], dim=2) for part in range(3))
        out = exact_attention(q, k, v).out.to(q.dtype)
        for rank, shard in zip(group, out.chunk(len(group), dim=2), strict=True):
            outs[rank] = shard
    return tuple(outs)


def _right_hops(case: Case) -> Hops:
    sizes = {rank: len(group) for group in ring.groups(case) for rank in group}
    block = ring.block_bytes(case)
    return [(block,) * (sizes.get(rank, 1) - 1) for rank in range(case.world_size)]


def _edges(case: Case) -> set[tuple[int, int]]:
    return {
        (rank, group[(place + 1) % len(group)])
        for group in ring.groups(case)
        for place, rank in enumerate(group)
        if len(group) > 1
    }


def _neighbours(case: Case, seen: Observation) -> Outcome:
    wanted, got = _edges(case), set(seen.timeline.edges())
    strays = ", ".join(f"{a} to {b}" for a, b in sorted(got - wanted)) or "none astray"
    return Outcome(got == wanted, "messages to the next rank of the group", strays)


def _sends(seen: Observation) -> list[Event]:
    return [event for event in seen.timeline if event.kind == "send"]


def _outside(case: Case, seen: Observation) -> bool | None:
    """Messages go over another group than the one that was given."""
    groups = [tuple(group) for group in ring.groups(case)]
    if groups == [tuple(range(case.world_size))]:
        return None
    return any(event.group not in groups for event in _sends(seen))


def _stray(case: Case, seen: Observation) -> tuple[bool, bool] | None:
    """Whether a peer outside of the group is one by group number, and one by world number."""
    found = STRAY.match(seen.failure.message) if seen.failure is not None else None
    if found is None:
        return None
    rank, peer = int(found[1]), int(found[2])
    group = next(group for group in ring.groups(case) if rank in group)
    place, size, world = group.index(rank), len(group), case.world_size
    return (
        peer in ((place + 1) % size, (place - 1) % size),
        peer in ((rank + 1) % world, (rank - 1) % world),
    )


def _by_group_number(case: Case, seen: Observation) -> bool | None:
    stray = _stray(case, seen)
    return False if stray is None else None if all(stray) else stray[0]


def _by_world_number(case: Case, seen: Observation) -> bool | None:
    stray = _stray(case, seen)
    return False if stray is None else None if all(stray) else stray[1]


def _world_as_group(case: Case, seen: Observation) -> bool | None:
    """Every message goes where the world number, taken for a group number, leads."""
    sends = _sends(seen)
    if not sends:
        return None
    return all(e.peer == e.group[(e.rank + 1) % len(e.group)] for e in sends)


def _too_many_steps(case: Case, seen: Observation) -> bool | None:
    """As many hops as the world has ranks but one, in a smaller group."""
    if seen.failure is not None:
        return False
    rank = ring.groups(case)[0][0]
    return seen.timeline.hops(rank) == (ring.block_bytes(case),) * (case.world_size - 1)


def _case(title: str, world_size: int, seed: int, groups: str, **options: int) -> Case:
    return ring.case(title, world_size, seed, groups=groups, **options)


EXERCISE = Exercise(
    name="group_safe_ring",
    lesson="03",
    title="The ring on a group",
    minutes=20,
    difficulty=3,
    objective="write a ring that runs on any group of ranks, wherever in the world they are",
    signature="group_safe_ring(q, k, v, group)",
    hints=(
        "A rank has two numbers: one in the world and one in its group. Which of them does "
        "dist.get_rank() give, which does P2POp's peer take, and which its group_peer?",
        "dist.get_rank(group) and dist.get_world_size(group) count in the group, and so does "
        "group_peer=. Give group= to every P2POp. With those four your ring_forward is a ring on "
        "any group; a group of one rank sends nothing.",
    ),
    checks=(
        Check("numbers", 3, results(_right)),
        Check("hops", 2, hops(_right_hops)),
        Check("neighbours", 2, _neighbours, after="hops"),
    ),
    cases=(
        _case("4 ranks, one group of all", 4, 51, "0 1 2 3", tokens=2),
        _case("4 ranks, groups 0 1 and 2 3", 4, 52, "0 1|2 3", tokens=3),
        _case("6 ranks, groups 1 3 4 and 0 2", 6, 53, "1 3 4|0 2", tokens=2, heads=6),
        _case("3 ranks, groups 0 and 1 2", 3, 54, "0|1 2", tokens=3, kv_heads=1),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "gathers_everything",
            "The numbers are right, but the blocks are collected in a collective: every rank of "
            "the group then holds all of them. Pass one at a time to the next rank.",
            collects,
        ),
        Mistake(
            "ignores_the_group",
            "Your messages go over the group of all ranks, not over the one that was given. "
            "P2POp has an argument group=, and it must be given each time.",
            _outside,
        ),
        Mistake(
            "group_number_as_world_number",
            "A number that counts in the group is given as peer=, which counts in the world. In "
            "the first group the two are the same, and in the next the rank is not found. Use "
            "group_peer=.",
            _by_group_number,
        ),
        Mistake(
            "neighbours_by_world_number",
            "Next and previous rank are counted in the world, where the neighbour need not belong "
            "to the group. Count in the group: dist.get_rank(group), dist.get_world_size(group).",
            _by_world_number,
        ),
        Mistake(
            "world_size_for_group_size",
            "The number of steps, or the remainder, is that of the world: a group of two then "
            "makes as many hops as there are ranks in the world. Use dist.get_world_size(group).",
            any_of(_too_many_steps, fails("ValueError", words="Group rank")),
        ),
        Mistake(
            "world_number_as_group_number",
            "The rank's number in the world is used where its number in the group is meant, so "
            "some ranks send to themselves or past their neighbour. It goes well in groups whose "
            "numbers happen to fit. Use dist.get_rank(group).",
            _world_as_group,
        ),
    ),
    draw=ring.draw,
)
