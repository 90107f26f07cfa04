"""Caches in groups: any ranks, in any order, several at once, and nothing beyond the group."""

from __future__ import annotations

from collections.abc import Sequence as Ranks

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Interleaved, World, ZigZag, decode_attention
from tests.decode.cases import Sequence, assert_exact, cache_of, every_method, sequence

SPLITS: list[tuple[int, list[tuple[int, ...]]]] = [
    (4, [(0, 1), (2, 3)]),
    (4, [(1, 0), (3, 2)]),
    (6, [(4, 0, 2), (1, 5, 3)]),
    (4, [(2, 3, 1)]),
    (5, [(4,), (3, 1)]),
]
every_split = pytest.mark.parametrize(("size", "groups"), SPLITS, ids=str)


def decode(problems: list[Sequence], groups: list[Ranks[int]], method: str) -> Tensor | None:
    """Load and attend in the group that this rank belongs to, on that group's own sequence."""
    made = [dist.new_group(list(ranks), sort_ranks=False) for ranks in groups]
    for given, ranks, group in zip(problems, groups, made, strict=True):
        if dist.get_rank() in ranks:
            cache = cache_of(given, layout=Interleaved(2), group=group)
            k, v = (ZigZag().shard(x, group.rank(), group.size()) for x in given[1:])
            cache.load(k, v, layout=ZigZag())
            return decode_attention(given.q, cache, method=method)
    return None


@every_method
@every_split
def test_report_g1_g4_each_group_decodes_its_own_sequence(
    method: str, size: int, groups: list[Ranks[int]]
) -> None:
    problems = [sequence(13 + 4 * index, 2, seed=index) for index in range(len(groups))]
    world = World(size)
    found = world.run(decode, problems, groups, method)
    for given, ranks in zip(problems, groups, strict=True):
        for rank in ranks:
            assert_exact(found[rank], given)
            assert torch.equal(found[rank], found[ranks[0]])
    members = {frozenset(ranks) for ranks in groups}
    for event in world.timeline:
        if event.bytes_out + event.bytes_in:
            assert frozenset(event.group) in members
            assert event.peer is None or event.peer in event.group
