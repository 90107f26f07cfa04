"""Rings over shards of different lengths that do not come to their end, or to numbers."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ragged_shards.pieces import (
    by_rule,
    hop,
    packed_blocks,
    pairs_of_blocks,
    room,
    wait,
)
from tests.exercises.bank.ring_forward.pieces import merge, merged, online, partial, place


def room_as_long_as_what_is_sent_a(q, k, v, lengths):
    """As in the ring for equal shards."""
    _, size = place()
    held, out = torch.stack([k, v]), None
    for step in range(size):
        arriving = torch.empty_like(held)
        handles = hop([held], [arriving]) if step < size - 1 else []
        part = partial(q, *held)
        out = part if out is None else merge(*out, *part)
        wait(handles)
        held = arriving
    return out[0].to(q.dtype)


def room_as_long_as_what_is_sent_b(q, k, v, lengths):
    """Two buffers of the rank's own length that swap."""
    own = q.shape[2]
    return merged(q, pairs_of_blocks(k, v, lambda step: own))


def room_for_the_neighbours_own_a(q, k, v, lengths):
    rank, _ = place()
    return merged(q, packed_blocks(k, v, lambda step: lengths[rank - 1]))


def room_for_the_neighbours_own_b(q, k, v, lengths):
    rank, size = place()
    before = (rank + size - 1) % size
    out = partial(q, k, v)
    held = [k, v]
    for _ in range(size - 1):
        coming = [torch.empty(*k.shape[:2], lengths[before], k.shape[3]) for _ in held]
        wait(hop([x.contiguous() for x in held], coming))
        held = coming
        out = merge(*out, *partial(q, *held))
    return out[0].to(q.dtype)


def lengths_the_other_way_a(q, k, v, lengths):
    rank, size = place()
    return merged(q, packed_blocks(k, v, lambda step: lengths[(rank + step) % size]))


def lengths_the_other_way_b(q, k, v, lengths):
    rank, _ = place()
    onwards = lengths[rank:] + lengths[:rank]
    return merged(q, pairs_of_blocks(k, v, onwards.__getitem__))


def leaves_without_tokens_a(q, k, v, lengths):
    if q.shape[2] == 0:
        return q
    return merged(q, packed_blocks(k, v, by_rule(lengths)))


def leaves_without_tokens_b(q, k, v, lengths):
    """It receives, and passes nothing on that is not its own."""
    rank, size = place()
    held, out = [k.contiguous(), v.contiguous()], partial(q, k, v)
    for step in range(1, size):
        following = [k.new_empty(*k.shape[:2], lengths[rank - step], k.shape[3]) for _ in held]
        wait(hop(held if lengths[rank] else [], following if lengths[rank] else []))
        held = following
        out = merge(*out, *partial(q, *held)) if lengths[rank] else out
    return out[0].to(q.dtype)


def empty_block_breaks_it_a(q, k, v, lengths):
    """There is no maximum of nothing."""
    return online(q, pairs_of_blocks(k, v, by_rule(lengths)))


def empty_block_breaks_it_b(q, k, v, lengths):
    """0 / 0 for a block of nothing."""
    total = weight = 0.0
    for keys, values in packed_blocks(k, v, by_rule(lengths)):
        heads = q.shape[1] // k.shape[1]
        scores = q @ keys.repeat_interleave(heads, dim=1).mT / q.shape[-1] ** 0.5
        sums = scores.exp().sum(-1, keepdim=True)
        out = scores.exp() @ values.repeat_interleave(heads, dim=1) / sums
        total, weight = total + sums * out, weight + sums
    return total / weight


def send_before_receive_a(q, k, v, lengths):
    rank, size = place()
    held, out = torch.stack([k, v]), partial(q, k, v)
    for step in range(1, size):
        dist.send(held, (rank + 1) % size)
        held = room(k, lengths[rank - step])
        dist.recv(held, (rank - 1) % size)
        out = merge(*out, *partial(q, *held))
    return out[0].to(q.dtype)


def send_before_receive_b(q, k, v, lengths):
    def apart(sends, receives):
        rank, size = place()
        wait([dist.isend(x, (rank + 1) % size) for x in sends])
        return [dist.irecv(x, (rank - 1) % size) for x in receives]

    return merged(q, pairs_of_blocks(k, v, by_rule(lengths), hop=apart))
