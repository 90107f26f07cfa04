"""What the tests of decode share: a sequence, a cache filled with it, the numbers expected."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Interleaved, ShardedKVCache, Timeline, World, decode_attention
from tests import oracle

METHODS = ["split_k", "all_gather", "ring"]
SIZES = [1, 2, 3, 4, 5, 8]
BLOCKS = [1, 2, 16]

every_method = pytest.mark.parametrize("method", METHODS)
every_size = pytest.mark.parametrize("size", SIZES)
every_block = pytest.mark.parametrize("block", BLOCKS)


class Sequence(NamedTuple):
    """Queries of the last n tokens [B, Hq, n, D]; keys and values of all, [B, Hkv, L, D]."""

    q: Tensor
    k: Tensor
    v: Tensor

    @property
    def length(self) -> int:
        return self.k.shape[2]


def sequence(
    length: int,
    new: int = 1,
    *,
    batch: int = 2,
    heads: int = 6,
    kv_heads: int = 3,
    head_dim: int = 10,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> Sequence:
    """Draw normal numbers; no two sizes are equal by default."""
    draw = torch.Generator().manual_seed(seed)

    def normal(heads: int, tokens: int) -> Tensor:
        shape = (batch, heads, tokens, head_dim)
        return torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype)

    return Sequence(normal(heads, new), normal(kv_heads, length), normal(kv_heads, length))


def expected(given: Sequence, scale: float | None = None) -> Tensor:
    """What the last n tokens attend to, in float64 by definition, [B, Hq, n, D]."""
    new = given.q.shape[2]
    queries = torch.arange(given.length - new, given.length)
    mask = queries[:, None] >= torch.arange(given.length)
    return oracle.attention(*given, mask=mask, scale=scale).out


def cache_of(given: Sequence, **options: Any) -> ShardedKVCache:
    """An empty cache for a sequence."""
    batch, kv_heads, _, head_dim = given.k.shape
    return ShardedKVCache(
        batch, kv_heads, head_dim, dtype=given.k.dtype, device=given.k.device, **options
    )


def filled(given: Sequence, **options: Any) -> ShardedKVCache:
    """A cache that was given a sequence in one piece."""
    cache = cache_of(given, **options)
    cache.append(given.k, given.v)
    return cache


def attend(given: Sequence, method: str, block: int = 1, **options: Any) -> Tensor:
    """Decode on a rank, from an append of the whole sequence."""
    group = options.pop("group", None)
    cache = filled(given, layout=Interleaved(block), group=group)
    return decode_attention(given.q, cache, method=method, **options)


def run(given: Sequence, size: int, method: str, block: int = 1, **options: Any) -> Tensor:
    """Decode on virtual ranks; fail unless all of them come to the same bits."""
    outs = World(size).run(attend, given, method, block, **options)
    assert all(torch.equal(out, outs[0]) for out in outs)
    return outs[0]


def assert_exact(found: Tensor, given: Sequence, scale: float | None = None) -> None:
    """Fail unless every number is that of one device in float64, to 1e-12."""
    torch.testing.assert_close(found, expected(given, scale), rtol=1e-12, atol=1e-12)


def place() -> tuple[int, int]:
    """Rank and world size."""
    return dist.get_rank(), dist.get_world_size()


def messages(timeline: Timeline) -> list[str]:
    """The operations that sent anything or could have."""
    return [event.name for event in timeline if event.kind in ("send", "recv", "collective")]
