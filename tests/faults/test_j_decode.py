"""J: every rank knows who owns each cached token, and decode is that of one device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
import torch
import torch.distributed as dist
from hypothesis import strategies as st
from torch import Tensor

from ringlab import Interleaved, Layout, RankFailed, ShardedKVCache, World, ZigZag, decode_attention
from ringlab.numerics import available_kernels
from tests.decode.cases import (
    METHODS,
    Sequence,
    assert_exact,
    cache_of,
    every_method,
    every_size,
    expected,
    messages,
    run,
    sequence,
)
from tests.faults.drawn import layouts, orders, search, sizes, two_tiers
from tests.prefill import cases as prefill


@dataclass(frozen=True)
class Turn:
    """What a cache goes through before the next question: a prompt, drafts of which some go."""

    layout: Layout
    told: bool
    prompt: int
    drafted: int
    kept: int


@dataclass(frozen=True)
class Talk:
    """A sequence that grows turn by turn, in a world or in a part of it."""

    turns: list[Turn]
    ranks: tuple[int, ...]
    world: int
    block: int
    new: int
    heads: int
    kv_heads: int
    capacity: bool
    order: Literal["stream", "host"]
    seed: int


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    drafted = draw(st.integers(0, 4))
    prompt = draw(st.one_of(st.integers(0, 12), st.sampled_from([1, 7, 13, 29])))
    return Turn(draw(layouts), draw(st.booleans()), prompt, drafted, draw(st.integers(0, drafted)))


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    world, kv_heads = draw(sizes), draw(st.integers(1, 3))
    ranks = draw(st.permutations(range(world)))[: draw(st.integers(1, world))]
    return Talk(
        turns=draw(st.lists(turns(), min_size=1, max_size=3)),
        ranks=tuple(ranks),
        world=world,
        block=draw(st.one_of(st.integers(1, 5), st.sampled_from([16, 64]))),
        new=draw(st.integers(1, 4)),
        heads=kv_heads * draw(st.integers(1, 3)),
        kv_heads=kv_heads,
        capacity=draw(st.booleans()),
        order=draw(orders),
        seed=draw(st.integers(0, 2**31)),
    )


def most(talk: Talk) -> int:
    """Tokens that are ever in the cache at once."""
    held = peak = 0
    for turn in talk.turns:
        peak = max(peak, held + turn.prompt + turn.drafted)
        held += turn.prompt + turn.kept
    return max(peak, held + talk.new)


def converse(talk: Talk, given: Sequence) -> tuple[list[Tensor], Tensor, tuple[int, ...]] | None:
    """Turn by turn on a rank of the group; the last tokens are asked by every method."""
    group = dist.new_group(list(talk.ranks), sort_ranks=False)
    if dist.get_rank() not in talk.ranks:
        return None
    capacity = most(talk) if talk.capacity else None
    cache = cache_of(given, layout=Interleaved(talk.block), group=group, capacity=capacity)
    for turn in talk.turns:
        start = cache.length
        rows = slice(start, start + turn.prompt)
        k, v = (turn.layout.shard(x[:, :, rows], group.rank(), group.size()) for x in given[1:])
        cache.load(k, v, layout=turn.layout, length=turn.prompt if turn.told else None)
        start += turn.prompt
        drafts = slice(start, start + turn.drafted)
        wrong = given.k.new_full((*given.k.shape[:2], turn.drafted - turn.kept, cache.head_dim), 9)
        kept = slice(start, start + turn.kept)
        assert drafts.stop - kept.stop == wrong.shape[2]
        cache.append(*(torch.cat((x[:, :, kept], wrong), 2) for x in given[1:]))
        cache.truncate(kept.stop)
    cache.append(*(x[:, :, cache.length :] for x in given[1:]))
    cache.verify()
    assert torch.equal(cache.keys, given.k[:, :, cache.positions()])
    outs = [decode_attention(given.q, cache, method=method) for method in METHODS]
    return outs, cache.positions(), cache.lengths


def check_talk(talk: Talk) -> None:
    length = sum(turn.prompt + turn.kept for turn in talk.turns) + talk.new
    given = sequence(length, talk.new, heads=talk.heads, kv_heads=talk.kv_heads, seed=talk.seed)
    results = World(talk.world, order=talk.order).run(converse, talk, given)
    found = [results[rank] for rank in talk.ranks]
    exact, size = expected(given), len(talk.ranks)
    for outs, positions, lengths in found:
        assert lengths == found[0][2]
        for mine, theirs in zip(outs, found[0][0], strict=True):
            assert torch.equal(mine, theirs)
            torch.testing.assert_close(mine, exact, rtol=1e-12, atol=1e-12)
        assert positions.tolist() == sorted(positions.tolist())
    for rank, (_, positions, lengths) in enumerate(found):
        mine = [i for i in range(length) if i // talk.block % size == rank]
        assert positions.tolist() == mine
        assert lengths[rank] == len(mine)


@two_tiers(few=10, many=150)
def test_any_cache_knows_its_owners_and_decodes_as_one_device(examples: int) -> None:
    search(talks(), check_talk, examples)


@every_method
def test_report_j4_every_kernel_of_this_machine_decodes_the_same_numbers(method: str) -> None:
    given = sequence(29, 3, dtype=torch.float32, head_dim=16)
    usable = {report.name for report in available_kernels() if report.usable}
    kernels = usable & {"reference", "cpu_flash"}
    assert len(kernels) == 2
    for kernel in kernels:
        found = run(given, 4, method, block=2, kernel=kernel)
        torch.testing.assert_close(found.double(), expected(given), rtol=0, atol=2e-6)


x = torch.zeros(1, 2, 3, 4)
COMBINATIONS: dict[str, tuple[Callable[[], object], str]] = {
    "no tokens in a block": (lambda: Interleaved(0), "block"),
    "zigzag as a cache": (lambda: ShardedKVCache(1, 2, 4, layout=ZigZag()), "Interleaved(block)"),
    "no room": (lambda: ShardedKVCache(1, 2, 4, capacity=0), "1 or more"),
    "integers": (lambda: ShardedKVCache(1, 2, 4, dtype=torch.int8), "bfloat16"),
    "a mesh": (lambda: ShardedKVCache(1, 2, 4, group="cp"), "mesh.get_group(dimension)"),
    "no method": (lambda: decode_attention(x, ShardedKVCache(1, 2, 4), method="dcp"), "split_k"),
    "causal": (lambda: decode_attention(x, ShardedKVCache(1, 2, 4), causal=True), "is causal"),
    "pages": (lambda: decode_attention(x, ShardedKVCache(1, 2, 4), page_table=x), "paged caches"),
}


@pytest.mark.parametrize("what", COMBINATIONS)
def test_report_j5_what_does_not_fit_together_is_refused_before_anything_is_sent(what: str) -> None:
    call, word = COMBINATIONS[what]
    world = World(2)
    with pytest.raises(RankFailed) as caught:
        world.run(call)
    assert isinstance(caught.value.__cause__, (TypeError, ValueError, NotImplementedError))
    assert word in str(caught.value.__cause__)
    assert messages(world.timeline) == []


@every_size
@pytest.mark.parametrize("block", [13, 14, 1000])
def test_report_j8_a_block_may_be_as_long_as_the_sequence_or_longer(size: int, block: int) -> None:
    for method in METHODS:
        given = sequence(13, 2)
        assert_exact(run(given, size, method, block), given)
    whole = prefill.inputs(13)
    for attend in prefill.METHODS:
        found = prefill.run(attend, whole, size, Interleaved(block), causal=True)
        prefill.assert_exact(found, whole, causal=True)
