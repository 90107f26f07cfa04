"""The sharded cache: who owns which token, appending, growing, forgetting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

import ringlab.decode.cache
from ringlab import Interleaved, ShardedKVCache, World
from tests.decode.cases import (
    BLOCKS,
    Sequence,
    cache_of,
    every_block,
    every_size,
    filled,
    messages,
    place,
    sequence,
)


def one_by_one(given: Sequence, block: int) -> list[tuple[int, tuple[int, ...], Tensor]]:
    """Append token by token; after each the ledger of this rank."""
    cache, ledger = cache_of(given, layout=Interleaved(block)), []
    for token in range(given.length):
        row = slice(token, token + 1)
        cache.append(given.k[:, :, row], given.v[:, :, row])
        ledger.append((cache.local_length, cache.lengths, cache.positions()))
    return ledger


@every_size
@every_block
def test_report_j7_every_rank_derives_the_same_owners_from_the_length(
    size: int, block: int
) -> None:
    given = sequence(21, batch=1, kv_heads=1, head_dim=1)
    ledgers = World(size).run(one_by_one, given, block)
    for length, entries in enumerate(zip(*ledgers, strict=True), 1):
        held, lengths, positions = zip(*entries, strict=True)
        assert {*lengths} == {held}
        assert sum(held) == length
        assert sorted(torch.cat(positions).tolist()) == list(range(length))
        for rank, mine in enumerate(positions):
            assert all(p // block % size == rank for p in mine.tolist())
            assert mine.tolist() == sorted(mine.tolist())
            assert torch.equal(mine, Interleaved(block).positions(rank, size, length))


@pytest.mark.parametrize("block", BLOCKS)
def test_no_token_ever_moves(block: int) -> None:
    given = sequence(40, batch=1, kv_heads=1, head_dim=1)
    for ledger in World(3).run(one_by_one, given, block):
        for (_, _, before), (_, _, after) in pairwise(ledger):
            assert torch.equal(after[: len(before)], before)


def test_with_blocks_of_one_no_rank_holds_two_tokens_more_than_another() -> None:
    given = sequence(40, batch=1, kv_heads=1, head_dim=1)
    for _, lengths, _ in World(3).run(one_by_one, given, 1)[0]:
        assert max(lengths) - min(lengths) <= 1


def appended(given: Sequence, counts: list[int], options: dict[str, Any]) -> None:
    """Append a few tokens at a time and compare what this rank holds each time."""
    cache, start = cache_of(given, **options), 0
    for count in counts:
        rows = slice(start, start + count)
        cache.append(given.k[:, :, rows], given.v[:, :, rows])
        start += count
        assert cache.length == start
        assert torch.equal(cache.keys, given.k[:, :, cache.positions()])
        assert torch.equal(cache.values, given.v[:, :, cache.positions()])


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("capacity", [None, 60])
def test_tokens_come_one_at_a_time_or_several_at_once(size: int, capacity: int | None) -> None:
    given = sequence(60)
    for block in BLOCKS:
        for counts in ([60], [1, 1, 5, 0, 17, 3, 30, 3], [7, 40]):
            options = {"layout": Interleaved(block), "capacity": capacity}
            World(size).run(appended, given, counts, options)


def growth(given: Sequence, capacity: int | None) -> tuple[int, int]:
    """How often the memory of a cache moved, and how many rows were copied, token by token."""
    cache, moves, copied = cache_of(given, capacity=capacity), 0, 0
    for token in range(given.length):
        row, before, held = slice(token, token + 1), cache.keys.data_ptr(), cache.local_length
        cache.append(given.k[:, :, row], given.v[:, :, row])
        if held and cache.keys.data_ptr() != before:
            moves, copied = moves + 1, copied + held
    assert torch.equal(cache.keys, given.k[:, :, cache.positions()])
    return moves, copied


def test_growing_copies_a_row_less_than_once_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ringlab.decode.cache, "FIRST_ROWS", 4)
    rows = 9 * 4
    given = sequence(2 * rows, batch=1, kv_heads=1, head_dim=1)
    for moves, copied in World(2).run(growth, given, None):
        assert moves == 4  # 1, 2, 4, 8 times as much, then 16
        assert 0 < copied < 2 * rows
    assert set(World(2).run(growth, given, 2 * rows)) == {(0, 0)}


def only_owners_write(given: Sequence) -> list[bool]:
    """For each new token, whether the memory of this rank changed."""
    cache = cache_of(given, capacity=given.length)
    store = cache._storage.tensor.zero_()
    changed = []
    for token in range(given.length):
        before, row = store.clone(), slice(token, token + 1)
        cache.append(given.k[:, :, row], given.v[:, :, row])
        changed.append(not torch.equal(store, before))
    return changed


def test_only_the_owner_of_a_token_writes_it() -> None:
    found = World(3).run(only_owners_write, sequence(7))
    for rank, changed in enumerate(found):
        assert changed == [token % 3 == rank for token in range(7)]


def test_appending_sends_nothing() -> None:
    world = World(3)
    world.run(filled, sequence(20))
    assert messages(world.timeline) == []


def forget(given: Sequence) -> None:
    """Truncate to every length, then append the rest again."""
    for length in range(given.length + 1):
        cache = filled(given, layout=Interleaved(2))
        store = cache._storage.tensor
        cache.truncate(length)
        assert cache.length == length
        assert torch.equal(cache.keys, given.k[:, :, cache.positions()])
        cache.append(given.k[:, :, length:], given.v[:, :, length:])
        assert torch.equal(cache.values, given.v[:, :, cache.positions()])
        cache.reset()
        assert (cache.length, cache.local_length, cache.lengths) == (0, 0, (0, 0, 0))
        assert cache._storage.tensor is store


def test_report_d16_rejected_tokens_are_forgotten_and_others_take_their_place() -> None:
    World(3).run(forget, sequence(11))


def test_memory_is_that_of_the_shard_alone() -> None:
    def room() -> int:
        cache = ShardedKVCache(2, 3, 8, capacity=1000, dtype=torch.bfloat16)
        return cache._storage.tensor.untyped_storage().nbytes()

    token = 2 * 2 * 3 * 8 * 2
    assert World(8).run(room) == [125 * token] * 8


def test_a_cache_takes_the_default_dtype_and_device_where_none_are_given() -> None:
    def made() -> tuple[torch.dtype, str]:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with torch.device("meta"):
                cache = ShardedKVCache(1, 1, 1)
        finally:
            torch.set_default_dtype(before)
        return cache.dtype, cache.keys.device.type

    assert World(1).run(made) == [(torch.float64, "meta")]


def test_a_cache_shows_what_it_holds() -> None:
    shown = World(2).run(lambda: repr(filled(sequence(5), capacity=9)))
    assert shown[1] == (
        "ShardedKVCache(2, 3, 10, layout=Interleaved(block=1), capacity=9, dtype=torch.float64, "
        "device='cpu'): 2 of 5 tokens on rank 1 of 2"
    )


def drifted(lengths: tuple[int, ...]) -> str:
    rank, _ = place()
    cache = filled(sequence(lengths[rank]))
    try:
        cache.verify()
    except ValueError as error:
        return str(error)
    return "alike"


def test_report_j7_caches_that_drifted_apart_are_found_on_every_rank() -> None:
    assert World(3).run(drifted, (5, 5, 5)) == ["alike"] * 3
    for told in World(3).run(drifted, (5, 4, 5)):
        assert "ShardedKVCache.verify" in told
        assert "tokens in the cache: rank by rank it is [5, 4, 5]" in told
