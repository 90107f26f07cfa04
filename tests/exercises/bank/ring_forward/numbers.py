"""Rings that send what they should and compute something else."""

from __future__ import annotations

import torch

from tests.exercises.bank.ring_forward.pieces import (
    merge,
    merged,
    online,
    packed_ring,
    partial,
    repeated,
    ring_of_pairs,
    scores_of,
    sums,
)


def added_without_weights_a(q, k, v):
    return sum(partial(q, *block)[0] for block in packed_ring(k, v)).to(q.dtype)


def added_without_weights_b(q, k, v):
    total = torch.zeros(q.shape)
    for keys, values in ring_of_pairs(k, v):
        total += torch.softmax(scores_of(q, keys), dim=-1) @ repeated(q, values)
    return total.to(q.dtype)


def averaged_a(q, k, v):
    return torch.stack([partial(q, *block)[0] for block in packed_ring(k, v)]).mean(0).to(q.dtype)


def averaged_b(q, k, v):
    mean = None
    for count, block in enumerate(ring_of_pairs(k, v), 1):
        part, _ = partial(q, *block)
        mean = part if mean is None else mean + (part - mean) / count
    return mean.to(q.dtype)


def weights_swapped_a(q, k, v):
    out = lse = None
    for block in packed_ring(k, v):
        part, part_lse = partial(q, *block)
        if out is None:
            out, lse = part, part_lse
            continue
        both = torch.logaddexp(lse, part_lse)
        out = (part_lse - both).exp()[..., None] * out + (lse - both).exp()[..., None] * part
        lse = both
    return out.to(q.dtype)


def weights_swapped_b(q, k, v):
    blocks = ring_of_pairs(k, v)
    out, lse = partial(q, *next(blocks))
    for keys, values in blocks:
        part, part_lse = partial(q, keys, values)
        share = torch.sigmoid(lse - part_lse).unsqueeze(-1)  # of `out`, and given to `part`
        out = out + share * (part - out)
        lse = torch.logaddexp(lse, part_lse)
    return out.to(q.dtype)


def lse_not_merged_a(q, k, v):
    blocks = packed_ring(k, v)
    out, lse = partial(q, *next(blocks))
    for block in blocks:
        out, _ = merge(out, lse, *partial(q, *block))
    return out.to(q.dtype)


def lse_not_merged_b(q, k, v):
    out = lse = None
    for block in ring_of_pairs(k, v):
        part, part_lse = partial(q, *block)
        if out is not None:
            share = torch.sigmoid(part_lse - lse).unsqueeze(-1)
            part = torch.lerp(out, part, share)
        out, lse = part, part_lse
    return out.to(q.dtype)


def not_rescaled_a(q, k, v):
    total = norm = 0.0
    for keys, values in packed_ring(k, v):
        largest = scores_of(q, keys).amax(-1, keepdim=True)
        here, weights = sums(q, keys, values, largest)
        total, norm = total + here, norm + weights
    return (total / norm).to(q.dtype)


def not_rescaled_b(q, k, v):
    parts = []
    for keys, values in ring_of_pairs(k, v):
        scores = scores_of(q, keys)
        weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        parts.append((weights @ repeated(q, values), weights.sum(-1)))
    values, norms = (torch.stack(part).sum(0) for part in zip(*parts, strict=True))
    return (values / norms[..., None]).to(q.dtype)


def last_block_alone_a(q, k, v):
    for block in packed_ring(k, v):
        out, _ = partial(q, *block)
    return out.to(q.dtype)


def last_block_alone_b(q, k, v):
    blocks = list(ring_of_pairs(k, v))
    return merged(q, blocks[-1:])


def last_block_missing_a(q, k, v):
    blocks = list(packed_ring(k, v))
    return merged(q, blocks[:-1] or blocks)


def last_block_missing_b(q, k, v):
    out = lse = waiting = None
    for block in ring_of_pairs(k, v):
        if waiting is not None:
            part = partial(q, *waiting)
            out, lse = part if out is None else merge(out, lse, *part)
        waiting = block
    if out is None:
        out, lse = partial(q, *waiting)
    return out.to(q.dtype)


def own_block_missing_a(q, k, v):
    blocks = packed_ring(k, v)
    own = next(blocks)
    others = list(blocks)
    return merged(q, others or [own])


def own_block_missing_b(q, k, v):
    blocks = ring_of_pairs(k, v)
    first = next(blocks)
    rest = [(keys.clone(), values.clone()) for keys, values in blocks]
    return online(q, rest if rest else [first])


def ignores_what_arrives_a(q, k, v):
    return merged(q, ((k, v) for _ in packed_ring(k, v)))


def ignores_what_arrives_b(q, k, v):
    out, _ = partial(q, k, v)
    for _block in ring_of_pairs(k, v):
        pass
    return out.to(q.dtype)


def scale_twice_a(q, k, v):
    return merged(q / q.shape[-1] ** 0.5, packed_ring(k, v))


def scale_twice_b(q, k, v):
    factor = q.shape[-1] ** -0.5
    scaled = (q.float() * factor).to(q.dtype)
    return online(scaled, ring_of_pairs(k, v))


def no_scale_a(q, k, v):
    return merged(q * q.shape[-1] ** 0.5, packed_ring(k, v)).to(q.dtype)


def no_scale_b(q, k, v):
    out = lse = None
    for keys, values in ring_of_pairs(k, v):
        scores = torch.einsum("bhqd,bhkd->bhqk", q.float(), repeated(q, keys))
        part = scores.softmax(-1) @ repeated(q, values), scores.logsumexp(-1)
        out, lse = part if out is None else merge(out, lse, *part)
    return out.to(q.dtype)


def kv_heads_in_wrong_order_a(q, k, v):
    times = q.shape[1] // k.shape[1]
    return merged(q, (block.float().repeat(1, 1, times, 1, 1) for block in packed_ring(k, v)))


def kv_heads_in_wrong_order_b(q, k, v):
    head = torch.arange(q.shape[1]) % k.shape[1]
    return online(q, ((keys[:, head], values[:, head]) for keys, values in ring_of_pairs(k, v)))


def overflows_a(q, k, v):
    total = norm = 0.0
    for keys, values in packed_ring(k, v):
        weights = scores_of(q, keys).exp()
        total, norm = total + weights @ repeated(q, values), norm + weights.sum(-1, keepdim=True)
    return (total / norm).to(q.dtype)


def overflows_b(q, k, v):
    total, norm = torch.zeros(q.shape), torch.zeros(*q.shape[:-1], 1)
    for block in ring_of_pairs(k, v):
        values, weights = sums(q, *block, 0.0)
        total += values
        norm += weights
    return torch.nan_to_num(total, nan=torch.nan).div(norm).to(q.dtype)


def other_dtype_a(q, k, v):
    return merged(q.float(), packed_ring(k, v))


def other_dtype_b(q, k, v):
    return online(q.double(), ring_of_pairs(k, v))


def sixteen_bit_state_a(q, k, v):
    out = lse = None
    for block in packed_ring(k, v):
        part = tuple(x.to(q.dtype) for x in partial(q, *block))
        out, lse = part if out is None else merge(out, lse, *part)
    return out.to(q.dtype)


def sixteen_bit_state_b(q, k, v):
    total, norm, largest = torch.zeros_like(q), torch.zeros_like(q[..., :1]), None
    for keys, values in ring_of_pairs(k, v):
        here = scores_of(q, keys).amax(-1, keepdim=True)
        new = here if largest is None else torch.maximum(largest, here)
        factor = 0.0 if largest is None else (largest - new).exp()
        more, weights = sums(q, keys, values, new)
        total, norm = (factor * total + more).to(q.dtype), (factor * norm + weights).to(q.dtype)
        largest = new
    return total / norm
