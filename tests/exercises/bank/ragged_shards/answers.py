"""Rings over shards of different lengths that end, right and wrong."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ragged_shards.pieces import (
    by_rule,
    hop,
    kept,
    packed_blocks,
    pairs_of_blocks,
    room,
    wait,
)
from tests.exercises.bank.ring_forward.pieces import merge, merged, online, partial, place


def right_a(q, k, v, lengths):
    """Blocks of nothing are merged like others."""
    return merged(q, packed_blocks(k, v, by_rule(lengths)))


def right_b(q, k, v, lengths):
    """Running maximum and sums; blocks of nothing are left out."""
    found = list(kept(pairs_of_blocks(k, v, by_rule(lengths))))
    return online(q, found) if q.shape[2] else q.clone()


def right_c(q, k, v, lengths):
    """Every hop is made, those of nothing too, by one rank after the other."""
    rank, size = place()
    held, out = torch.stack([k, v]), None
    for step in range(size):
        part = partial(q, *held)
        out = part if out is None else merge(*out, *part)
        if step == size - 1:
            return out[0].to(q.dtype)
        following = room(k, lengths[rank - step - 1])
        send = dist.P2POp(dist.isend, held, (rank + 1) % size)
        receive = dist.P2POp(dist.irecv, following, (rank - 1) % size)
        wait(dist.batch_isend_irecv([receive, send]))
        held = following


def right_d(q, k, v, lengths):
    """Hops end at the last rank that has a query."""
    rank, size = place()

    def goes_on(owner, steps):
        return any(lengths[(owner + more) % size] for more in range(steps + 1, size))

    held, parts = torch.stack([k, v]), [partial(q, k, v)]
    for step in range(1, size):
        owner, mine = (rank - step) % size, (rank - step + 1) % size
        following = room(k, lengths[owner] if goes_on(owner, step - 1) else 0)
        wait(hop([held] if goes_on(mine, step - 1) else [], [following]))
        held = following
        parts.append(partial(q, *held))
    outs, lses = (torch.stack(x) for x in zip(*parts, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0).to(q.dtype)


def gathers_everything_a(q, k, v, lengths):
    """Padded, gathered, and cut again."""
    _, size = place()
    padded = room(k, max(lengths))
    padded[..., : k.shape[2], :] = torch.stack([k, v])
    blocks = [torch.empty_like(padded) for _ in range(size)]
    dist.all_gather(blocks, padded)
    cut = [block[..., :length, :] for block, length in zip(blocks, lengths, strict=True)]
    return merged(q, cut)


def gathers_everything_b(q, k, v, lengths):
    """A ring, after the lengths have been gathered, which everybody has already."""
    rank, size = place()
    found = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(found, torch.tensor([k.shape[2]]))
    return merged(q, packed_blocks(k, v, lambda step: int(found[(rank - step) % size])))


def tells_the_lengths_a(q, k, v, lengths):
    _, size = place()
    held, out = torch.stack([k, v]), partial(q, k, v)
    for _ in range(size - 1):
        coming = torch.zeros(1, dtype=torch.int64)
        wait(hop([torch.tensor([held.shape[3]])], [coming]))
        following = room(k, int(coming))
        wait(hop([held], [following]))
        held = following
        out = merge(*out, *partial(q, *held))
    return out[0].to(q.dtype)


def tells_the_lengths_b(q, k, v, lengths):
    """The shape goes first, as four numbers."""
    _, size = place()
    held, parts = [k.contiguous(), v.contiguous()], [partial(q, k, v)]
    while len(parts) < size:
        shape = torch.zeros(4, dtype=torch.int32)
        wait(hop([torch.tensor(held[0].shape, dtype=torch.int32)], [shape]))
        following = [torch.empty(*shape.tolist()) for _ in held]
        wait(hop(held, following))
        held = following
        parts.append(partial(q, *held))
    outs, lses = (torch.stack(x) for x in zip(*parts, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0).to(q.dtype)


def pads_to_the_longest_a(q, k, v, lengths):
    longest = max(lengths)
    padded = room(k, longest).zero_()
    padded[..., : k.shape[2], :] = torch.stack([k, v])
    own = by_rule(lengths)
    blocks = packed_blocks(*padded, lambda step: longest)
    return merged(q, (block[..., : own(step), :] for step, block in enumerate(blocks)))


def pads_to_the_longest_b(q, k, v, lengths):
    """Padded, with minus infinity where nothing stands."""
    rank, size = place()
    longest = max(lengths)
    held = [torch.zeros(*x.shape[:2], longest, x.shape[3]) for x in (k, v)]
    for full, x in zip(held, (k, v), strict=True):
        full[:, :, : x.shape[2]] = x
    scores, values = [], []
    for step, (keys, there) in enumerate(pairs_of_blocks(*held, lambda step: longest)):
        beyond = torch.arange(longest) >= lengths[(rank - step) % size]
        wide = keys.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        scores.append((q @ wide.mT / q.shape[-1] ** 0.5).masked_fill(beyond, -torch.inf))
        values.append(there.repeat_interleave(q.shape[1] // k.shape[1], dim=1))
    return torch.cat(scores, -1).softmax(-1) @ torch.cat(values, -2)


def padding_is_attended_to_a(q, k, v, lengths):
    longest = max(lengths)
    padded = room(k, longest).zero_()
    padded[..., : k.shape[2], :] = torch.stack([k, v])
    return merged(q, packed_blocks(*padded, lambda step: longest))


def padding_is_attended_to_b(q, k, v, lengths):
    """The own block as it is, the others padded as they arrive."""
    longest = max(lengths)

    def padded(block):
        missing = longest - block[0].shape[-2]
        return [torch.nn.functional.pad(x, (0, 0, 0, missing)) for x in block]

    blocks = pairs_of_blocks(k, v, by_rule(lengths))
    return online(q, [next(blocks), *map(padded, blocks)]) if q.shape[2] else _drained(q, blocks)


def _drained(q, blocks):
    for _ in blocks:
        pass
    return q.clone()


def cut_to_the_shortest_a(q, k, v, lengths):
    shortest = min(lengths)
    blocks = packed_blocks(k[:, :, :shortest], v[:, :, :shortest], lambda step: shortest)
    next(blocks)
    return merged(q, [(k, v), *blocks])


def cut_to_the_shortest_b(q, k, v, lengths):
    shortest = min(lengths)
    blocks = list(pairs_of_blocks(k, v, by_rule(lengths)))
    if shortest == 0:
        return merged(q, blocks)
    return online(q, [(keys[:, :, :shortest], there[:, :, :shortest]) for keys, there in blocks])


def weighted_by_length_a(q, k, v, lengths):
    total = 0.0
    for block in packed_blocks(k, v, by_rule(lengths)):
        total = total + partial(q, *block)[0] * block[0].shape[-2]
    return (total / sum(lengths)).to(q.dtype)


def weighted_by_length_b(q, k, v, lengths):
    mean, count = torch.zeros_like(q), 0
    for keys, values in kept(pairs_of_blocks(k, v, by_rule(lengths))):
        count += keys.shape[2]
        mean = mean + (partial(q, keys, values)[0] - mean) * (keys.shape[2] / count)
    return mean
