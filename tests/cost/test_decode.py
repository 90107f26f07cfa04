"""Closed forms of the bytes of decode against what ranks sent, rank by rank, launch by launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from ringlab import Contiguous, Interleaved, Layout, Striped, World, ZigZag, cost
from ringlab.cost import Decode, Traffic
from tests.decode.cases import METHODS, Sequence, attend, sequence
from tests.decode.test_load import load
from tests.layouts.cases import Word

FORMULAS: dict[str, Callable[[Decode], Traffic]] = {
    "split_k": cost.decode_split_k,
    "all_gather": cost.decode_all_gather,
    "ring": cost.decode_ring,
}
LAYOUTS: list[Layout] = [Contiguous(), ZigZag(), Striped(), Interleaved(3), Word((0, 1, 0, 2))]
DTYPES = (torch.float32, torch.bfloat16, torch.float64)
LLAMA_3_70B = Decode(8, 131072, 1, 64, 8, 128, torch.bfloat16)


def call(size: int, length: int, new: int = 1, block: int = 1) -> Decode:
    dtype = DTYPES[size % 3]
    return Decode(size, length, 2, 6, 3, 10, dtype, new, Interleaved(block))


def given(of: Decode) -> Sequence:
    """A sequence without data: what is sent does not depend on it."""
    drawn = sequence(of.length, of.new_tokens, dtype=of.dtype)
    return Sequence(*(x.to("meta") for x in drawn))


def assert_sent(world: World, traffic: Traffic) -> None:
    timeline = world.timeline
    for rank in range(world.size):
        assert timeline.hops(rank) == traffic.hops(rank), f"rank {rank}"
        assert timeline.bytes_sent(rank) == traffic.bytes_sent(rank)
        assert timeline.bytes_received(rank) == traffic.bytes_received(rank)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", range(1, 9))
def test_each_launch_of_each_rank_sends_what_the_formula_says(method: str, size: int) -> None:
    for length, new, block in [(23, 1, 1), (23, 3, 4), (3, 1, 1), (40, 2, 16)]:
        of = call(size, length, new, block)
        with World(size) as world:
            world.run(attend, given(of), method, block)
            assert_sent(world, FORMULAS[method](of))


def load_meta(of: Decode, layout: Layout, prompts: list[int]) -> None:
    """The loads of `tests.decode.test_load`, which compares data, without data."""
    from tests.decode.cases import cache_of, place

    rank, size = place()
    cache = cache_of(given(of), layout=of.layout)
    for length in prompts:
        local = layout.local_length(rank, size, length)
        k = torch.empty(2, 3, local, 10, dtype=of.dtype, device="meta")
        cache.load(k, k, layout=layout, length=length)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("size", range(1, 9))
def test_a_load_sends_each_row_that_must_move_once_and_nothing_else(
    layout: Layout, size: int
) -> None:
    for block, prompts in [(1, [23]), (4, [23, 1, 17]), (16, [40])]:
        of, traffic, length = call(size, sum(prompts), 1, block), Traffic(()), 0
        for prompt in prompts:
            length += prompt
            part = replace(of, length=length)
            traffic = traffic.then(cost.cache_load(part, layout, prompt=prompt))
        with World(size) as world:
            world.run(load_meta, of, layout, prompts)
            assert_sent(world, traffic)


def test_asking_for_the_length_of_a_prompt_costs_64_bytes_to_each_other_rank() -> None:
    of = replace(call(3, 23), dtype=torch.float64)
    with World(3) as world:
        world.run(load, sequence(23), ZigZag(), [23])
        assert_sent(world, cost.handshake(3).then(cost.cache_load(of, ZigZag())))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_zigzag_prompt_sends_all_but_a_wth_of_itself(size: int) -> None:
    of = replace(LLAMA_3_70B, world_size=size, length=1024 * size)
    traffic = cost.cache_load(of, ZigZag())
    assert traffic.total() == of.kv_bytes(of.length) * (size - 1) // size
    assert len({traffic.bytes_sent(rank) for rank in range(size)}) == 1


@pytest.mark.parametrize("size", range(2, 9))
def test_claim_c39_split_k_sends_the_same_at_every_length(size: int) -> None:
    of = replace(LLAMA_3_70B, world_size=size)
    sent = {cost.decode_split_k(replace(of, length=n)).bytes_sent(0) for n in (1, 999, 1 << 20)}
    assert sent == {(size - 1) * 64 * 129 * 4}
    for formula in (cost.decode_ring, cost.decode_all_gather):
        one, two = (formula(replace(of, length=n * 840)).bytes_sent(0) for n in (1, 2))
        assert two == 2 * one == 2 * (size - 1) * of.kv_bytes(840 // size)


def test_claim_c39_llama_3_70b_in_all_layers() -> None:
    moved = {
        size: [
            round(80 * formula(replace(LLAMA_3_70B, world_size=size)).bytes_sent(0) / 1e6, 2)
            for formula in FORMULAS.values()
        ]
        for size in (2, 4, 8, 16)
    }
    assert moved == {
        2: [2.64, 21474.84, 21474.84],
        4: [7.93, 32212.25, 32212.25],
        8: [18.49, 37580.96, 37580.96],
        16: [39.63, 40265.32, 40265.32],
    }


def test_claim_c39_moving_keys_and_values_pays_only_below_eight_tokens_a_rank() -> None:
    for size in (2, 8):
        for tokens in (7, 8, 9):
            of = replace(LLAMA_3_70B, world_size=size, length=tokens * size)
            split, ring = (FORMULAS[m](of).bytes_sent(0) for m in ("split_k", "ring"))
            assert (split < ring) == (tokens > 8)
