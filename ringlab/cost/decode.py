"""What decode over a sharded KV cache sends, in closed form.

With W ranks, a cache of L tokens (L/W on each rank, to within a block), n new tokens, and with

* X = 2·B·Hkv·(L/W)·D·itemsize, the bytes of a rank's K and V,
* Z = B·Hq·n·(D+1)·4, the bytes of a partial result: out and LSE in the accumulation dtype (8
  instead of 4 for float64),

each rank sends, for every layer,

==========  ==========================
method      bytes
==========  ==========================
split_k     (W-1)·Z in one collective
all_gather  (W-1)·X in one collective
ring        (W-1)·X in W-1 messages
==========  ==========================

`append` sends nothing. Split-K sends less than the others as soon as a rank holds more than
``Hq·n·(D+1)·4 / (2·Hkv·D·itemsize)`` tokens: 8 for one new token, 16-bit inputs and 8 query
heads a KV head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

import torch

from ringlab.cost.traffic import Message, Traffic, nonempty, ring_collective
from ringlab.layout import Interleaved, Layout, Run


@dataclass(frozen=True)
class Decode:
    """One call of `decode_attention` in one layer: all that its bytes depend on.

    Parameters
    ----------
    world_size : int
        Ranks in the group, W.
    length : int
        Tokens in the cache, L, the new ones included.
    batch, heads, kv_heads, head_dim : int
        B, Hq, Hkv and D.
    dtype : torch.dtype
        Of the cache.
    new_tokens : int
        Tokens that attend, n.
    layout : Interleaved
        Of the cache.

    Examples
    --------
    Bytes that a rank of eight sends for a token, all 80 layers of Llama 3 70B, at two lengths:

    >>> from dataclasses import replace
    >>> import torch
    >>> from ringlab.cost import Decode, decode_ring, decode_split_k
    >>> short = Decode(8, 131072, 1, 64, 8, 128, torch.bfloat16)
    >>> long = replace(short, length=1048576)
    >>> [80 * decode_split_k(call).bytes_sent(0) for call in (short, long)]
    [18493440, 18493440]
    >>> [80 * decode_ring(call).bytes_sent(0) for call in (short, long)]
    [37580963840, 300647710720]
    """

    world_size: int
    length: int
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    new_tokens: int = 1
    layout: Interleaved = Interleaved(1)  # noqa: RUF009  frozen, no state

    def kv_bytes(self, tokens: int) -> int:
        """Bytes of the K and V of some tokens."""
        return 2 * self.batch * self.kv_heads * tokens * self.head_dim * self.dtype.itemsize

    def partial_bytes(self) -> int:
        """Bytes of a partial result of all new tokens: out and LSE, float32 or float64."""
        queries = self.batch * self.heads * self.new_tokens
        return queries * (self.head_dim + 1) * max(4, self.dtype.itemsize)

    def tokens(self, rank: int) -> int:
        """Tokens on a rank."""
        return self.layout.local_length(rank, self.world_size, self.length)


def decode_split_k(call: Decode) -> Traffic:
    """Count the partial results of ``method="split_k"``: the same at every length."""
    return ring_collective(call.world_size, call.partial_bytes())


def decode_all_gather(call: Decode) -> Traffic:
    """Count the K and V, padded to the longest part, of ``method="all_gather"``."""
    return ring_collective(call.world_size, call.kv_bytes(max(map(call.tokens, _ranks(call)))))


def decode_ring(call: Decode) -> Traffic:
    """Count the K and V that go round in ``method="ring"``: every part makes W-1 hops."""
    return nonempty(
        Message(step, (source + step) % call.world_size, (source + step + 1) % call.world_size,
                call.kv_bytes(call.tokens(source)))
        for step in range(call.world_size - 1)
        for source in _ranks(call)
    )  # fmt: skip


def cache_load(call: Decode, layout: Layout, *, prompt: int | None = None) -> Traffic:
    """Count the K and V that `ShardedKVCache.load` moves to their owners.

    Parameters
    ----------
    call : Decode
        Its `length` is that of the cache after the load.
    layout : Layout
        Of the prompt's shards.
    prompt : int, optional
        Tokens of the prompt, the last ones of the cache; all of them by default.

    Notes
    -----
    Nothing else moves: without `length` there are 64·(W-1) bytes more from each rank
    (`handshake`).
    """
    length = call.length if prompt is None else prompt
    return nonempty(
        Message(0, source, target, call.kv_bytes(_shared(call, shard, target)))
        for source, shard in enumerate(_shards(call, layout, length))
        for target in _ranks(call)
        if source != target
    )


def _shards(call: Decode, layout: Layout, length: int) -> Iterator[tuple[Run, ...]]:
    """Where the prompt's tokens on each rank stand in the cache."""
    start = call.length - length
    for rank in _ranks(call):
        runs = layout.runs(rank, call.world_size, length)
        yield tuple(Run(start + run.start, run.step, run.count) for run in runs)


def _shared(call: Decode, shard: tuple[Run, ...], rank: int) -> int:
    """Tokens of a shard that a rank owns."""
    return sum(_owned(call, run, rank) for run in shard)


def _owned(call: Decode, run: Run, rank: int) -> int:
    """Positions of a run that a rank owns: owners repeat after so many positions."""
    if run.step == 1:
        ends = (run.start, run.start + run.count)
        before, after = (call.layout.local_length(rank, call.world_size, end) for end in ends)
        return after - before
    repeat = call.layout.block * call.world_size
    period = repeat // gcd(run.step, repeat)
    hits = [
        (run.start + index * run.step) // call.layout.block % call.world_size == rank
        for index in range(period)
    ]
    periods, rest = divmod(run.count, period)
    return periods * sum(hits) + sum(hits[:rest])


def _ranks(call: Decode) -> range:
    return range(call.world_size)
