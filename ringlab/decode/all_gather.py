"""All-gather: every rank collects the whole cache, then attends to it."""

from __future__ import annotations

import torch
from torch import Tensor

from ringlab.calls.exchange import gather_blocks
from ringlab.decode.cache import ShardedKVCache
from ringlab.decode.partial import Query, pack


def parts(query: Query, cache: ShardedKVCache, kind: torch.dtype) -> Tensor:
    """The partial results on all parts, [W, queries·(D + 1)], after one all-gather of K and V."""
    lengths = cache.lengths
    blocks = gather_blocks(cache.keys, cache.values, lengths, cache.group)
    queries, head_dim = query.folded.shape[:3].numel(), cache.head_dim
    shape = (cache.world_size, queries * (head_dim + 1))
    packed = torch.empty(shape, dtype=kind, device=cache.device)
    for source, length in enumerate(lengths):
        k, v = blocks[source][:, :, :, :length]
        pack(query.attend(k, v, source), packed[source])
    return packed
