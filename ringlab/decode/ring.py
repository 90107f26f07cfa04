"""The ring: the parts of the cache go round, each rank attends to all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from ringlab.calls.exchange import exchange
from ringlab.decode.cache import ShardedKVCache
from ringlab.decode.partial import Query, pack
from ringlab.prefill.buffers import BlockBuffer
from ringlab.prefill.buffers import pack as pack_block


def parts(query: Query, cache: ShardedKVCache, kind: torch.dtype) -> Tensor:
    """The partial results on all parts, [W, queries·(D + 1)], computed here in W-1 hops.

    The rank's own part is attended to in the buffer that it travels in, as the others do, so
    that all ranks come to the same bits.
    """
    rank, world_size, lengths = cache.rank, cache.world_size, cache.lengths
    held, spare = BlockBuffer(cache.keys, lengths), BlockBuffer(cache.keys, lengths)
    pack_block(held.block(rank), cache.keys, cache.values)
    queries, head_dim = query.folded.shape[:3].numel(), cache.head_dim
    packed = torch.empty((world_size, queries * (head_dim + 1)), dtype=kind, device=cache.device)
    for step in range(world_size):
        source, following = (rank - step) % world_size, (rank - step - 1) % world_size
        handles = []
        if step < world_size - 1:
            sends = [(held.block(source), (rank + 1) % world_size)]
            receives = [(spare.block(following), (rank - 1) % world_size)]
            handles = exchange(sends, receives, cache.group)
        k, v = held.block(source)
        pack(query.attend(k, v, source), packed[source])
        for handle in handles:
            handle.wait()
        held, spare = spare, held
    return packed
