"""On real ranks: the results of the virtual world, its messages, and generated tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Interleaved, World, ZigZag, decode_attention
from tests.decode.cases import METHODS, Sequence, cache_of, every_method, sequence
from tests.decode.models import on_ranks
from tests.decode.test_generation import STEPS, expected, prompt

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("one_thread")]

SIZE = 4
GROUPS = ([0, 1, 2, 3], [1, 3, 2])


@pytest.fixture(scope="module")
def gloo() -> Iterator[World]:
    with World(SIZE, backend="gloo", threads=1) as world:
        yield world


def decode_in_groups(given: Sequence, methods: list[str]) -> list[Tensor]:
    """Load a ragged prompt, append two tokens and attend, over all ranks and over three."""
    found: list[Tensor] = []
    for ranks in GROUPS:
        group = dist.new_group(ranks, sort_ranks=False)
        if dist.get_rank() not in ranks:
            continue
        cache, length = cache_of(given, layout=Interleaved(3), group=group), given.length - 2
        parts = [ZigZag().shard(x[:, :, :length], group.rank(), group.size()) for x in given[1:]]
        cache.load(*parts, layout=ZigZag())
        cache.append(given.k[:, :, length:], given.v[:, :, length:])
        found += [decode_attention(given.q, cache, method=method) for method in methods]
    return found


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_real_ranks_compute_the_bits_of_virtual_ones(gloo: World, dtype: torch.dtype) -> None:
    for length in (3, 37):
        given = sequence(length, 2, dtype=dtype)
        real = gloo.run(decode_in_groups, given, METHODS)
        virtual = World(SIZE).run(decode_in_groups, given, METHODS)
        for mine, theirs in zip(real, virtual, strict=True):
            assert len(mine) == len(theirs)
            assert all(torch.equal(x, y) for x, y in zip(mine, theirs, strict=True))


@every_method
def test_real_ranks_send_what_virtual_ones_send(gloo: World, method: str) -> None:
    sent = []
    for world in (gloo, World(SIZE)):
        world.run(decode_in_groups, sequence(37, 2), [method])
        sent.append([world.timeline.hops(rank) for rank in range(SIZE)])
    assert sent[0] == sent[1]


@every_method
def test_report_j1_real_ranks_generate_the_tokens_of_one_device(gloo: World, method: str) -> None:
    for tokens in gloo.run(on_ranks, prompt(), STEPS, torch.float32, method, 2):
        assert torch.equal(tokens, expected(torch.float32))
