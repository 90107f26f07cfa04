"""Pieces of rings, in two ways of writing them: K and V in one tensor, or apart."""

from __future__ import annotations

import torch
import torch.distributed as dist


def place():
    return dist.get_rank(), dist.get_world_size()


def packed_ring(k, v, hops=None):
    """The block in hand of each step, [2, B, Hkv, L, D]; it goes on while it is used."""
    rank, size = place()
    held = torch.stack([k, v])
    for step in range(size):
        handles = []
        if step < (size - 1 if hops is None else hops):
            arriving = torch.empty_like(held)
            sending = dist.P2POp(dist.isend, held, group_peer=(rank + 1) % size)
            receiving = dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size)
            handles = dist.batch_isend_irecv([sending, receiving])
        yield held
        for handle in handles:
            handle.wait()
        if handles:
            held = arriving


def ring_of_pairs(k, v, hops=None):
    """The K and V in hand of each step; they go on, together, when the next step is asked for."""
    rank, size = place()
    after, before = (rank + 1) % size, (rank + size - 1) % size
    yield k, v
    for _ in range(size - 1 if hops is None else hops):
        new_k, new_v = torch.empty_like(k), torch.empty_like(v)
        k, v = k.contiguous(), v.contiguous()
        batch = [
            dist.P2POp(dist.irecv, new_k, before),
            dist.P2POp(dist.irecv, new_v, before),
            dist.P2POp(dist.isend, k, after),
            dist.P2POp(dist.isend, v, after),
        ]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        k, v = new_k, new_v
        yield k, v


def repeated(q, k):
    """KV heads for each query head, each repeated in place."""
    return k.float().repeat_interleave(q.shape[1] // k.shape[1], dim=1)


def scores_of(q, k):
    return q.float() @ repeated(q, k).mT / q.shape[-1] ** 0.5


def partial(q, k, v):
    """Normalised output and LSE of one block."""
    scores = scores_of(q, k)
    return scores.softmax(-1) @ repeated(q, v), scores.logsumexp(-1)


def sums(q, k, v, largest):
    """Sums of exponentials below `largest` [B, H, L, 1]: with the values, and alone."""
    weights = (scores_of(q, k) - largest).exp()
    return weights @ repeated(q, v), weights.sum(-1, keepdim=True)


def merge(out, lse, part, part_lse):
    both = torch.logaddexp(lse, part_lse)
    weights = (lse - both).exp()[..., None], (part_lse - both).exp()[..., None]
    return weights[0] * out + weights[1] * part, both


def merged(q, blocks):
    """Attention to all of the blocks."""
    out = lse = None
    for block in blocks:
        part = partial(q, *block)
        out, lse = part if out is None else merge(out, lse, *part)
    return out.to(q.dtype)


def online(q, blocks):
    """Attention to all of the blocks, by a running maximum and sums that are rescaled."""
    total = norm = 0.0
    largest = None
    for k, v in blocks:
        here = scores_of(q, k).amax(-1, keepdim=True)
        new = here if largest is None else torch.maximum(largest, here)
        factor = 0.0 if largest is None else (largest - new).exp()
        values, weights = sums(q, k, v, new)
        total, norm, largest = factor * total + values, factor * norm + weights, new
    return (total / norm).to(q.dtype)
