"""Causal rings on zig-zag shards.

Two rings that are written differently, each given what a rank sees of another's block: a pair of
slices of queries and keys, or nothing.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

ALL = slice(None)


def early_half(q):
    return slice(0, q.shape[2] // 2)


def late_half(q):
    return slice(q.shape[2] // 2, None)


def zigzag_rule(q, rank, source):
    return (ALL, early_half(q)) if source < rank else (late_half(q), ALL)


def attend(q, k, v, mask=None):
    keys, values = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ values, scores.logsumexp(-1)


def causal_mask(q):
    return torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()


def merging_ring(q, k, v, rule=zigzag_rule, own=causal_mask, turn=1):
    """Parts merged by their LSEs, hop by hop in a batch."""
    rank, size = dist.get_rank(), dist.get_world_size()
    held = torch.stack([k, v])
    out, lse = attend(q, k, v, own(q))
    for step in range(1, size):
        arriving = torch.empty_like(held)
        send = dist.P2POp(dist.isend, held, group_peer=(rank + turn) % size)
        receive = dist.P2POp(dist.irecv, arriving, group_peer=(rank - turn) % size)
        for handle in dist.batch_isend_irecv([send, receive]):
            handle.wait()
        held = arriving
        seen = rule(q, rank, (rank - turn * step) % size)
        if seen is not None:
            rows, keys = seen
            part, part_lse = attend(q[:, :, rows], *held[:, :, :, keys])
            both = torch.logaddexp(lse[:, :, rows], part_lse)
            old = (lse[:, :, rows] - both).exp()[..., None] * out[:, :, rows]
            out[:, :, rows] = old + (part_lse - both).exp()[..., None] * part
            lse[:, :, rows] = both
    return out


def summing_ring(q, k, v, rule=zigzag_rule, own=causal_mask, turn=1):
    """Running maximum, numerator and denominator; K and V apart in one batch."""
    rank, size = dist.get_rank(), dist.get_world_size()
    times = q.shape[1] // k.shape[1]
    top = torch.full(q.shape[:3], -1e30)
    total, weighted = torch.zeros(q.shape[:3]), torch.zeros_like(q)

    def add(rows, keys, values, mask=None):
        scores = q[:, :, rows] @ keys.repeat_interleave(times, 1).mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        new = torch.maximum(top[:, :, rows], scores.amax(-1))
        shrink, weights = (top[:, :, rows] - new).exp(), (scores - new[..., None]).exp()
        total[:, :, rows] = total[:, :, rows] * shrink + weights.sum(-1)
        weighted[:, :, rows] *= shrink[..., None]
        weighted[:, :, rows] += weights @ values.repeat_interleave(times, 1)
        top[:, :, rows] = new

    for step in range(size):
        after, before = (rank + turn) % size, (rank - turn) % size
        handles, new = [], [torch.empty_like(x) for x in (k, v)]
        if step < size - 1:
            operations = [dist.P2POp(dist.isend, x.contiguous(), group_peer=after) for x in (k, v)]
            operations += [dist.P2POp(dist.irecv, x, group_peer=before) for x in new]
            handles = dist.batch_isend_irecv(operations)
        source = (rank - turn * step) % size
        seen = (ALL, ALL) if source == rank else rule(q, rank, source)
        if seen is not None:
            rows, keys = seen
            add(rows, k[:, :, keys], v[:, :, keys], own(q) if source == rank else None)
        for handle in handles:
            handle.wait()
        k, v = new
    return weighted / total[..., None]


def positions(rank, size, tokens):
    pieces = torch.arange(size * tokens).chunk(2 * size)
    return torch.cat([pieces[rank], pieces[-1 - rank]])
