"""Rings in groups: any ranks, in any order, several at once, and nothing beyond the group."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch.distributed as dist

from ringlab import Striped, World, ZigZag
from tests.prefill.cases import (
    Attend,
    Inputs,
    Step,
    assert_exact,
    every_method,
    inputs,
    step,
    whole,
)

Ranks = Sequence[int]

SPLITS: list[tuple[int, list[Ranks]]] = [
    (4, [(0, 1), (2, 3)]),
    (4, [(0, 2), (1, 3)]),
    (4, [(1, 0), (3, 2)]),
    (6, [(0, 1, 2), (3, 4, 5)]),
    (6, [(0, 3), (1, 4), (2, 5)]),
    (6, [(4, 0, 2), (1, 5, 3)]),
    (4, [(2, 3, 1)]),
    (5, [(4,), (3, 1)]),
]
every_split = pytest.mark.parametrize(("size", "rings"), SPLITS, ids=str)


def train(method: Attend, problems: list[Inputs], rings: list[Ranks]) -> Step | None:
    """A step in the ring that this rank belongs to, on that ring's own data."""
    groups = [dist.new_group(list(ring), sort_ranks=False) for ring in rings]
    for given, ring, group in zip(problems, rings, groups, strict=True):
        if dist.get_rank() in ring:
            return step(method, given, ZigZag(), causal=True, group=group)
    return None


@every_method
@every_split
def test_report_g1_g4_each_ring_computes_its_own_sequence(
    method: Attend, size: int, rings: list[Ranks]
) -> None:
    problems = [inputs(13 + 4 * index, seed=index) for index in range(len(rings))]
    found = World(size).run(train, method, problems, rings)
    for given, ring in zip(problems, rings, strict=True):
        assert_exact(whole([found[rank] for rank in ring], ZigZag()), given, causal=True)


@every_method
@every_split
def test_report_g1_no_byte_leaves_the_group(method: Attend, size: int, rings: list[Ranks]) -> None:
    problems = [inputs(13 + 4 * index, seed=index) for index in range(len(rings))]
    with World(size) as world:
        world.run(train, method, problems, rings)
        timeline = world.timeline.communication()
    home = {rank: tuple(ring) for ring in rings for rank in ring}
    assert len(timeline) > 0
    for event in timeline:
        assert event.group == home[event.rank]
        assert event.peer is None or event.peer in event.group


def two_rings(method: Attend, first: Inputs, second: Inputs) -> tuple[Step, Step]:
    """Two sequences in two groups of the same ranks, the second in the opposite order."""
    ranks = range(dist.get_world_size())
    there = dist.new_group(list(ranks), sort_ranks=False)
    back = dist.new_group(list(reversed(ranks)), sort_ranks=False)
    return (
        step(method, first, Striped(), group=there),
        step(method, second, Striped(), group=back, causal=True),
    )


@every_method
def test_report_g7_two_rings_over_the_same_ranks_do_not_mix(method: Attend) -> None:
    first, second = inputs(14, seed=1), inputs(9, seed=2)
    found = World(3).run(two_rings, method, first, second)
    assert_exact(whole([there for there, _ in found], Striped()), first, causal=False)
    assert_exact(whole([back for _, back in reversed(found)], Striped()), second, causal=True)
