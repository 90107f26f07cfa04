"""Real ranks against float64 and one device, by the error ratio of 16-bit; also on GPUs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ringlab import Interleaved, World, ZigZag, decode_attention
from tests import oracle
from tests.decode.cases import Sequence, cache_of, every_method, expected, place, sequence
from tests.gpu.places import Ranks, every_place

LIMIT = 1.5


@pytest.fixture(scope="module")
def world(place: Ranks) -> Iterator[World]:
    with place.start() as world:
        yield world


def decode(given: Sequence, method: str) -> Tensor:
    """Load a prompt, append the new tokens and attend, on the device on which it has arrived."""
    rank, size = place()
    cache, length = cache_of(given, layout=Interleaved(2)), given.length - given.q.shape[2]
    parts = [ZigZag().shard(x[:, :, :length], rank, size) for x in given[1:]]
    cache.load(*parts, layout=ZigZag())
    cache.append(given.k[:, :, length:], given.v[:, :, length:])
    return decode_attention(given.q, cache, method=method).cpu()


@every_place
@every_method
@pytest.mark.parametrize("new", [1, 3])
def test_ranks_decode_as_exactly_as_one_device(
    world: World, place: Ranks, method: str, new: int
) -> None:
    given = sequence(701, new, heads=8, kv_heads=2, head_dim=64, dtype=torch.bfloat16)
    mask = torch.arange(701 - new, 701)[:, None] >= torch.arange(701)
    q, k, v, mask = (x.to(place.device) for x in (*given, mask))
    single = scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True).cpu()
    exact = expected(given)
    outs = world.run(decode, given, method)
    assert all(torch.equal(out, outs[0]) for out in outs)
    assert oracle.error(outs[0], exact) <= LIMIT * oracle.error(single, exact)
