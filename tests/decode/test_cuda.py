"""On GPUs: every rank against float64 on one device, by the error ratio of 16-bit partials."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ringlab import Interleaved, World, ZigZag, decode_attention
from tests import oracle
from tests.decode.cases import Sequence, cache_of, every_method, expected, place, sequence

LIMIT = 1.5


def on_gpu(given: Sequence, method: str) -> Tensor:
    """Load a prompt, append the new tokens and attend, on this rank's GPU."""
    rank, size = place()
    given = Sequence(*(x.cuda() for x in given))
    cache, length = cache_of(given, layout=Interleaved(2)), given.length - given.q.shape[2]
    parts = [ZigZag().shard(x[:, :, :length], rank, size) for x in given[1:]]
    cache.load(*parts, layout=ZigZag())
    cache.append(given.k[:, :, length:], given.v[:, :, length:])
    return decode_attention(given.q, cache, method=method).cpu()


def assert_near_one_device(outs: list[Tensor], given: Sequence) -> None:
    exact, new = expected(given), given.q.shape[2]
    mask = torch.arange(given.length - new, given.length)[:, None] >= torch.arange(given.length)
    q, k, v = (x.cuda() for x in given)
    single = scaled_dot_product_attention(q, k, v, attn_mask=mask.cuda(), enable_gqa=True)
    for out in outs:
        assert torch.equal(out, outs[0])
        assert oracle.error(out, exact) <= LIMIT * oracle.error(single.cpu(), exact)


def problem(new: int) -> Sequence:
    return sequence(701, new, heads=8, kv_heads=2, head_dim=64, dtype=torch.bfloat16)


@pytest.mark.cuda(count=1)
@every_method
@pytest.mark.parametrize("new", [1, 3])
def test_ranks_that_share_a_gpu_decode_as_exactly_as_one(method: str, new: int) -> None:
    with World(3, backend="nccl", share_gpu=True) as world:
        assert_near_one_device(world.run(on_gpu, problem(new), method), problem(new))


@pytest.mark.nccl
@every_method
@pytest.mark.parametrize("new", [1, 3])
def test_a_gpu_a_rank_decodes_as_exactly_as_one(method: str, new: int) -> None:
    with World(2, backend="nccl") as world:
        assert_near_one_device(world.run(on_gpu, problem(new), method), problem(new))
