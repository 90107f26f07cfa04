"""Prompts that were prefilled in any layout move to the owners of their tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from ringlab import Contiguous, Interleaved, Layout, Striped, World, ZigZag, decode_attention
from ringlab.world import RankFailed
from tests.decode.cases import Sequence, cache_of, every_size, expected, messages, place, sequence
from tests.layouts.cases import Word, layouts

LAYOUTS: list[Layout] = [Contiguous(), ZigZag(), Striped(), Interleaved(3), Word((0, 1, 0, 2))]


def load(
    given: Sequence, layout: Layout, parts: list[int], block: int = 1, **options: Any
) -> list[int]:
    """Load the parts of a sequence one after the other; compare what this rank holds."""
    group = options.pop("group", None)
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    cache, start = cache_of(given, layout=Interleaved(block), group=group), 0
    for length in parts:
        k, v = (layout.shard(x[:, :, start : start + length], rank, size) for x in given[1:])
        cache.load(k, v, layout=layout, **options)
        start += length
        assert cache.length == start
        assert torch.equal(cache.keys, given.k[:, :, cache.positions()])
        assert torch.equal(cache.values, given.v[:, :, cache.positions()])
    return cache.positions().tolist()


@every_size
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: type(x).__name__)
def test_a_prompt_of_any_layout_becomes_interleaved(size: int, layout: Layout) -> None:
    for length in (1, 23):
        World(size).run(load, sequence(length), layout, [length], 2)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: type(x).__name__)
def test_prompts_follow_one_another_as_turns_and_chunks_do(layout: Layout) -> None:
    World(3).run(load, sequence(40), layout, [7, 1, 0, 20, 12], 4)


@settings(max_examples=20)
@drawn(
    layout=layouts,
    size=st.integers(1, 5),
    block=st.integers(1, 9),
    parts=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    batch=st.integers(0, 2),
)
def test_any_prompt_is_loaded_exactly(
    layout: Layout, size: int, block: int, parts: list[int], batch: int
) -> None:
    given = sequence(sum(parts), batch=batch)
    found = World(size).run(load, given, layout, parts, block)
    assert sorted(p for mine in found for p in mine) == list(range(sum(parts)))


def test_one_message_moves_a_prompt_and_none_where_nothing_has_to_move() -> None:
    for layout, block, expected_names in [
        (ZigZag(), 1, ["all_to_all"] * 3),
        (Striped(), 1, []),
        (Interleaved(4), 4, []),
    ]:
        world = World(3)
        world.run(load, sequence(23), layout, [23], block, length=23)
        assert messages(world.timeline) == expected_names
    world = World(1)
    world.run(load, sequence(23), ZigZag(), [23])
    assert messages(world.timeline) == []


def then_decode(given: Sequence, layout: Layout, method: str) -> torch.Tensor:
    """Prefill all tokens but the last two, append one, then the last, which attends."""
    rank, size = place()
    cache, prompt = cache_of(given, layout=Interleaved(2)), given.length - 2
    shards = [layout.shard(x[:, :, :prompt], rank, size) for x in given[1:]]
    cache.load(*shards, layout=layout)
    for token in (prompt, prompt + 1):
        row = slice(token, token + 1)
        cache.append(given.k[:, :, row], given.v[:, :, row])
    return decode_attention(given.q, cache, method=method)


@pytest.mark.parametrize("method", ["split_k", "all_gather", "ring"])
def test_a_prefilled_prompt_is_decoded_exactly(method: str) -> None:
    given = sequence(31)
    for layout in LAYOUTS:
        for found in World(4).run(then_decode, given, layout, method):
            torch.testing.assert_close(found, expected(given), rtol=1e-12, atol=1e-12)


def caught(given: Sequence, change: str) -> str:
    """What a load says when the last rank does something else than the others."""
    rank, size = place()
    last, layout = rank == size - 1, ZigZag()
    cache = cache_of(given, layout=Interleaved(2 if last and change == "owners" else 1))
    if last and change == "ledger":
        cache.append(given.k[:, :, :1], given.v[:, :, :1])
    if last and change == "layout":
        layout = Contiguous()
    k, v = (layout.shard(x, rank, size) for x in given[1:])
    if last and change == "tokens":
        k, v = k[:, :, 1:], v[:, :, 1:]
    with pytest.raises(ValueError, match=r"ShardedKVCache\.load") as error:
        cache.load(k, v, layout=layout)
    assert cache.length == (1 if last and change == "ledger" else 0)
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ledger", "tokens in the cache: rank by rank it is [0, 0, 1]"),
        ("layout", "the ranks do not agree on the layout of the prompt"),
        ("owners", "the ranks do not agree on the layout of the cache"),
        ("tokens", "the ranks hold [7, 8, 7] tokens, but ZigZag() of length 22 over 3 ranks gives"),
    ],
)
def test_report_h5_ranks_that_disagree_are_all_told_so(change: str, words: str) -> None:
    world = World(3)
    for told in world.run(caught, sequence(23), change):
        assert words in told
    assert messages(world.timeline) == ["all_gather"] * 3


def test_a_shard_that_is_not_the_layouts_is_refused() -> None:
    def wrong() -> None:
        given = sequence(12)
        cache_of(given).load(given.k, given.v, layout=ZigZag(), length=12)

    with pytest.raises(RankFailed, match=r"rank 0 holds 12 tokens, but ZigZag\(\) of length 12"):
        World(2).run(wrong)
