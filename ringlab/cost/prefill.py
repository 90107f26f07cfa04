"""What the prefill methods send, in closed form.

With W ranks, equal shards of L/W tokens and no mask, and with

* X = 2·B·Hkv·(L/W)·D·itemsize, the bytes of a rank's K and V,
* Y = X for float32 and float64, 2·X for 16-bit inputs, the bytes of its dK and dV, which
  travel in the accumulation dtype,

each rank sends

====================  =========================  ===================================
method                forward                    backward
====================  =========================  ===================================
ring_attention        (W-1)·X in W-1 messages    (W-1)·(X+Y) in W+1 messages
all_gather_attention  (W-1)·X in one collective  (W-1)·X and (W-1)·Y in one each
====================  =========================  ===================================

(the ring of two ranks needs two messages backward, not three), and 64·(W-1) bytes
more where `length` is not given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ringlab.cost.traffic import Message, Traffic, nonempty, ring_collective
from ringlab.layout import Layout


@dataclass(frozen=True)
class Prefill:
    """One call of a prefill method: all that its bytes depend on.

    Parameters
    ----------
    layout : Layout
    world_size : int
        Ranks in the group, W.
    length : int
        Tokens of the whole sequence, L.
    batch, kv_heads, head_dim : int
        B, Hkv and D. The number of query heads moves no byte.
    dtype : torch.dtype
        Of q, k and v.
    causal : bool
    """

    layout: Layout
    world_size: int
    length: int
    batch: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    causal: bool = False

    def kv_bytes(self, tokens: int) -> int:
        """Bytes of the K and V of some tokens."""
        return 2 * self.batch * self.kv_heads * tokens * self.head_dim * self.dtype.itemsize

    def gradient_bytes(self, tokens: int) -> int:
        """Bytes of the dK and dV of some tokens: float32 for 16-bit inputs, else as K and V."""
        return self.kv_bytes(tokens) * max(4, self.dtype.itemsize) // self.dtype.itemsize

    def tokens(self, rank: int) -> int:
        """Tokens on a rank."""
        return sum(run.count for run in self.layout.runs(rank, self.world_size, self.length))

    def longest(self) -> int:
        """Tokens on the rank that has most."""
        return max(self.tokens(rank) for rank in range(self.world_size))

    def reach(self, source: int) -> int:
        """How many ranks further on in the ring a rank's K and V must go.

        Rank r needs the block of `source` if r has a query and `source` a key, and, under a
        causal mask, if the first key of `source` is not after the last query of r. With
        `Contiguous` and `causal` that is ``W - 1 - source`` as long as every rank has tokens;
        with the other layouts, or without a mask, W - 1 except in very short sequences.
        """
        first, _ = self._span(source)
        needing = 0
        for distance in range(1, self.world_size):
            _, last = self._span((source + distance) % self.world_size)
            if first is not None and last is not None and (not self.causal or first <= last):
                needing = distance
        return needing

    def _span(self, rank: int) -> tuple[int, int] | tuple[None, None]:
        """The first and the last position of a rank."""
        runs = [r for r in self.layout.runs(rank, self.world_size, self.length) if r.count]
        return (runs[0].start, runs[-1].last) if runs else (None, None)


def ring_forward(call: Prefill) -> Traffic:
    """Count the K and V that go round in the forward of `ring_attention`.

    The block of rank s leaves rank s+t in hop t, as far as it reaches.
    """
    return nonempty(_blocks(call))


def ring_backward(call: Prefill) -> Traffic:
    """Count the K and V, dK and dV that go round in the backward of `ring_attention`.

    K and V as in forward. The dK and dV of rank s leave rank s+t, which adds to them in step
    t, in hop t+1: to the next rank, or home to s from the last one that the block reaches.
    """
    return nonempty([*_blocks(call), *_gradients(call)])


def all_gather_forward(call: Prefill) -> Traffic:
    """Count the K and V, padded to the longest shard, in `all_gather_attention`."""
    return ring_collective(call.world_size, call.kv_bytes(call.longest()))


def all_gather_backward(call: Prefill) -> Traffic:
    """Count the K and V gathered again, and the dK and dV scattered, all padded."""
    gathered = ring_collective(call.world_size, call.kv_bytes(call.longest()))
    return gathered.then(ring_collective(call.world_size, call.gradient_bytes(call.longest())))


def _blocks(call: Prefill) -> Iterator[Message]:
    for source in range(call.world_size):
        size = call.kv_bytes(call.tokens(source))
        for step in range(call.reach(source)):
            yield _message(call, step, source + step, source + step + 1, size)


def _gradients(call: Prefill) -> Iterator[Message]:
    for source in range(call.world_size):
        size, reach = call.gradient_bytes(call.tokens(source)), call.reach(source)
        for step in range(1, reach + 1):
            home = step == reach
            receiver = source if home else source + step + 1
            yield _message(call, step + 1, source + step, receiver, size)


def _message(call: Prefill, launch: int, sender: int, receiver: int, size: int) -> Message:
    return Message(launch, sender % call.world_size, receiver % call.world_size, size)
