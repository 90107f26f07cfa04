"""Rings over shards of any length: K and V in one tensor, or apart."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_forward.pieces import place


def hop(sends, receives):
    """Send tensors to the next rank, receive from the one before; tensors of nothing stay."""
    rank, size = place()
    ops = [dist.P2POp(dist.isend, x, group_peer=(rank + 1) % size) for x in sends if x.numel()]
    ops += [dist.P2POp(dist.irecv, x, group_peer=(rank - 1) % size) for x in receives if x.numel()]
    return dist.batch_isend_irecv(ops) if ops else []


def wait(handles):
    for handle in handles:
        handle.wait()


def room(k, length):
    return k.new_empty(2, *k.shape[:2], length, k.shape[3])


def packed_blocks(k, v, coming):
    """The block in hand of each step; `coming(step)` is the length of the next one."""
    _, size = place()
    held = torch.stack([k, v])
    for step in range(size):
        following = room(k, coming(step + 1)) if step < size - 1 else held
        handles = hop([held], [following]) if step < size - 1 else []
        yield held
        wait(handles)
        held = following


def pairs_of_blocks(k, v, coming, hop=hop):
    """The same with K and V apart, which go on when the next step is asked for."""
    _, size = place()
    held = [k.contiguous(), v.contiguous()]
    yield held
    for step in range(1, size):
        following = [k.new_empty(*k.shape[:2], coming(step), k.shape[3]) for _ in held]
        wait(hop(held, following))
        held = following
        yield held


def by_rule(lengths):
    rank, size = place()
    return lambda step: lengths[(rank - step) % size]


def kept(blocks):
    """Blocks that have a token."""
    return (block for block in blocks if block[0].shape[-2])
