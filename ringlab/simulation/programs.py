"""The attention of one layer, recorded on meta tensors: a prefill, or one decoded token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.decode import ShardedKVCache, decode_attention
from ringlab.decode.attention import Method
from ringlab.host import cores
from ringlab.layout import Interleaved, Layout
from ringlab.memory import GroupedQuery
from ringlab.prefill import all_gather_attention, ring_attention
from ringlab.timeline import Timeline
from ringlab.world import World

PREFILL: dict[str, Callable[..., Tensor]] = {
    "ring": ring_attention,
    "all_gather": all_gather_attention,
}
DECODE: tuple[Method, ...] = ("split_k", "all_gather", "ring")

MANY = 256
"""From so many ranks on, the messages of a ring are recorded on all cores of this machine."""


def record_prefill(
    heads: GroupedQuery, dtype: torch.dtype, ranks: int, tokens: int, method: str, layout: Layout
) -> Timeline:
    """Record one layer's causal attention over a prompt, forward, batch 1."""
    processes = cores() if method == "ring" and ranks >= MANY else 1
    return _record(ranks, _prefill, heads, dtype, tokens, method, layout, processes=processes)


def record_decode(
    heads: GroupedQuery, dtype: torch.dtype, ranks: int, tokens: int, method: Method
) -> Timeline:
    """Record one layer's attention of a new token to a cache of `tokens`, its own included."""
    filled = _record(ranks, _decode, heads, dtype, tokens, None)
    whole = _record(ranks, _decode, heads, dtype, tokens, method)
    left = Counter(event.rank for event in filled)
    events = []
    for event in whole:
        if left[event.rank]:
            left[event.rank] -= 1
        else:
            events.append(event)
    return replace(whole, events=tuple(events))


def _record(
    ranks: int, program: Callable[..., None], *args: object, processes: int = 1
) -> Timeline:
    with World(ranks, timeout=600.0, processes=processes) as world:
        world.run(program, *args)
        return world.timeline


def _prefill(
    heads: GroupedQuery, dtype: torch.dtype, tokens: int, method: str, layout: Layout
) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    length = layout.local_length(rank, ranks, tokens)
    q = _empty(heads.heads, length, heads.head_dim, dtype)
    k, v = (_empty(heads.kv_heads, length, heads.head_dim, dtype) for _ in range(2))
    PREFILL[method](q, k, v, layout=layout, causal=True, length=tokens)


def _decode(heads: GroupedQuery, dtype: torch.dtype, tokens: int, method: Method | None) -> None:
    """Fill a cache but for the last token; unless `method` is None, add that one and attend."""
    cache = ShardedKVCache(1, heads.kv_heads, heads.head_dim, layout=Interleaved(1),
                           capacity=tokens, dtype=dtype, device="meta")  # fmt: skip
    if tokens > 1:
        prompt = _empty(heads.kv_heads, tokens - 1, heads.head_dim, dtype)
        cache.append(prompt, prompt)
    if method is not None:
        new = _empty(heads.kv_heads, 1, heads.head_dim, dtype)
        cache.append(new, new)
        decode_attention(_empty(heads.heads, 1, heads.head_dim, dtype), cache, method=method)


def _empty(heads: int, length: int, head_dim: int, dtype: torch.dtype) -> Tensor:
    return torch.empty(1, heads, length, head_dim, dtype=dtype, device="meta")
