"""Split-K: each rank attends to its own part of the cache; the partial results travel."""

from __future__ import annotations

import torch
from torch import Tensor

from ringlab.calls.exchange import all_gather
from ringlab.decode.cache import ShardedKVCache
from ringlab.decode.partial import Query, pack


def parts(query: Query, cache: ShardedKVCache, kind: torch.dtype) -> Tensor:
    """The partial results of all ranks, [W, queries·(D + 1)], by one all-gather."""
    state = query.attend(cache.keys, cache.values, cache.rank)
    size = state.out.numel() + state.lse.numel()
    own = torch.empty(size, dtype=kind, device=cache.device)
    pack(state, own)
    packed = torch.empty((cache.world_size, size), dtype=kind, device=cache.device)
    all_gather(packed.view(-1), own, cache.group)
    return packed
