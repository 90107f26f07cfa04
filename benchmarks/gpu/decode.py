"""One token against a cache on all devices: latency of the three methods.

Each token is waited for, since the next one of a model would need it.
"""

from __future__ import annotations

import statistics
from typing import Any, get_args

import torch

from benchmarks.gpu.clock import reading
from benchmarks.gpu.scale import Scale
from ringlab import ShardedKVCache, World, decode_attention
from ringlab.bench.readings import Phases, interleave, over_ranks
from ringlab.decode.attention import Method

METHODS = get_args(Method)


def run(world: World, device: str, scale: Scale) -> list[dict[str, Any]]:
    """Measure every method in turns, with each number of tokens in the cache."""
    rows = []
    for context in scale.contexts:

        def read(method: str, context: int = context) -> Phases:
            return over_ranks(world.run(rank_reads, method, context, device, scale))

        contestants = {method: lambda method=method, read=read: read(method) for method in METHODS}
        for method, taken in interleave(contestants, scale.rounds).items():
            median = statistics.median(one[method].wall for one in taken)
            rows.append({"context": context, "method": method, "s": median})
    return rows


def rank_reads(method: Method, context: int, device: str, scale: Scale) -> Phases:
    """One rank's reading: a cache of random keys and values, and one query."""
    kind = getattr(torch, scale.dtype)
    cache = ShardedKVCache(
        1, scale.kv_heads, scale.dim, capacity=context, dtype=kind, device=device
    )
    piece = min(context, 4096)
    for _ in range(0, context, piece):
        new = torch.randn(2, 1, scale.kv_heads, piece, scale.dim, dtype=kind, device=device)
        cache.append(*new)
    q = torch.randn(1, scale.heads, 1, scale.dim, dtype=kind, device=device)
    with torch.inference_mode():
        found = reading(
            lambda: decode_attention(q, cache, method=method), device, scale.steps,
            together=True, one_by_one=True,
        )  # fmt: skip
    return {method: found}
