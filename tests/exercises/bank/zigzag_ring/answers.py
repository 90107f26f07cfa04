"""Causal rings on zig-zag shards, right and wrong."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_forward.pieces import packed_ring, ring_of_pairs
from tests.exercises.bank.zigzag_ring.pieces import (
    ALL,
    attend,
    causal_mask,
    early_half,
    late_half,
    merging_ring,
    positions,
    summing_ring,
    zigzag_rule,
)


def right_a(q, k, v):
    return summing_ring(q, k, v)


def right_b(q, k, v):  # the own block in three pieces, and halves kept apart
    rank, size, half = dist.get_rank(), dist.get_world_size(), q.shape[2] // 2
    found = {0: [], 1: []}
    queries = q.split(half, dim=2)
    for step, held in enumerate(packed_ring(k, v)):
        source = (rank - step) % size
        early, late = held[..., :half, :], held[..., half:, :]
        mask = torch.ones(half, half, dtype=torch.bool).tril()
        if source == rank:
            found[0].append(attend(queries[0], *early, mask))
            found[1].append(attend(queries[1], *early))
            found[1].append(attend(queries[1], *late, mask))
        elif source < rank:
            for which in (0, 1):
                found[which].append(attend(queries[which], *early))
        else:
            for keys in (early, late):
                found[1].append(attend(queries[1], *keys))
    outs = []
    for parts in found.values():
        weights = torch.stack([lse for _, lse in parts]).softmax(0)
        outs.append((weights[..., None] * torch.stack([out for out, _ in parts])).sum(0))
    return torch.cat(outs, dim=2)


def gathers_everything_a(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    blocks = [torch.empty(2, *k.shape) for _ in range(size)]
    dist.all_gather(blocks, torch.stack([k, v]))
    keys, values = torch.cat(blocks, dim=-2)
    where = torch.cat([positions(r, size, q.shape[2]) for r in range(size)])
    return attend(q, keys, values, where <= positions(rank, size, q.shape[2])[:, None])[0]


def gathers_everything_b(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    each = []
    for x in (k, v):
        parts = [torch.empty_like(x) for _ in range(size)]
        dist.all_gather(parts, x.contiguous())
        each.append(parts)
    out, lse = attend(q, k, v, causal_mask(q))
    for source, block in enumerate(zip(*each, strict=True)):
        if source != rank:
            rows, keys = zigzag_rule(q, rank, source)
            part, part_lse = attend(q[:, :, rows], *(x[:, :, keys] for x in block))
            share = torch.sigmoid(part_lse - lse[:, :, rows])[..., None]
            out[:, :, rows] = torch.lerp(out[:, :, rows], part, share)
            lse[:, :, rows] = torch.logaddexp(lse[:, :, rows], part_lse)
    return out


def wrong_direction_a(q, k, v):
    return merging_ring(q, k, v, turn=-1)


def wrong_direction_b(q, k, v):
    return summing_ring(q, k, v, turn=-1)


def masks_whole_blocks_a(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = positions(rank, size, q.shape[2])
    found = []
    for step, held in enumerate(packed_ring(k, v)):
        theirs = positions((rank - step) % size, size, q.shape[2])
        mask = theirs <= mine[:, None]
        found.append(attend(q, *held, mask))
    outs, lses = (torch.stack(each) for each in zip(*found, strict=True))
    return (lses.softmax(0)[..., None] * outs.nan_to_num(0.0)).sum(0)


def masks_whole_blocks_b(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine, times = positions(rank, size, q.shape[2]), q.shape[1] // k.shape[1]
    weighted, total, top = torch.zeros_like(q), torch.zeros(q.shape[:3]), None
    for step, block in enumerate(ring_of_pairs(k, v)):
        keys, values = (x.repeat_interleave(times, 1) for x in block)
        later = positions((rank - step) % size, size, q.shape[2]) > mine[:, None]
        scores = (q @ keys.mT / q.shape[-1] ** 0.5).masked_fill(later, -1e30)
        new = scores.amax(-1) if top is None else torch.maximum(top, scores.amax(-1))
        shrink = torch.zeros_like(new) if top is None else (top - new).exp()
        weights = (scores - new[..., None]).exp().masked_fill(later, 0.0)
        weighted = weighted * shrink[..., None] + weights @ values
        total, top = total * shrink + weights.sum(-1), new
    return weighted / total[..., None]


def _no_mask(q):
    return torch.ones_like(causal_mask(q))


def own_block_unmasked_a(q, k, v):
    return merging_ring(q, k, v, own=_no_mask)


def own_block_unmasked_b(q, k, v):
    return summing_ring(q, k, v, own=_no_mask)


def own_block_only_a(q, k, v):
    return attend(q, k, v, causal_mask(q))[0]


def own_block_only_b(q, k, v):
    return summing_ring(q, k, v, lambda q, rank, source: None)


def _contiguous(q, rank, source):
    return (ALL, ALL) if source < rank else None


def rule_of_contiguous_a(q, k, v):
    return merging_ring(q, k, v, _contiguous)


def rule_of_contiguous_b(q, k, v):
    return summing_ring(q, k, v, _contiguous)


def _skips_later(q, rank, source):
    return (ALL, early_half(q)) if source < rank else None


def later_ranks_skipped_a(q, k, v):
    return merging_ring(q, k, v, _skips_later)


def later_ranks_skipped_b(q, k, v):
    return summing_ring(q, k, v, _skips_later)


def _whole_earlier(q, rank, source):
    return (ALL, ALL) if source < rank else (late_half(q), ALL)


def whole_block_of_earlier_ranks_a(q, k, v):
    return merging_ring(q, k, v, _whole_earlier)


def whole_block_of_earlier_ranks_b(q, k, v):
    return summing_ring(q, k, v, _whole_earlier)


def _whole_later(q, rank, source):
    return (ALL, early_half(q)) if source < rank else (ALL, ALL)


def early_queries_see_later_ranks_a(q, k, v):
    return merging_ring(q, k, v, _whole_later)


def early_queries_see_later_ranks_b(q, k, v):
    return summing_ring(q, k, v, _whole_later)


def _exchanged(q, rank, source):
    return zigzag_rule(q, source, rank)


def rules_exchanged_a(q, k, v):
    return merging_ring(q, k, v, _exchanged)


def rules_exchanged_b(q, k, v):
    return summing_ring(q, k, v, _exchanged)


def earlier_rule_for_all_a(q, k, v):
    return merging_ring(q, k, v, lambda q, rank, source: (ALL, early_half(q)))


def earlier_rule_for_all_b(q, k, v):
    return summing_ring(q, k, v, lambda q, rank, source: (ALL, early_half(q)))


def later_rule_for_all_a(q, k, v):
    return merging_ring(q, k, v, lambda q, rank, source: (late_half(q), ALL))


def later_rule_for_all_b(q, k, v):
    return summing_ring(q, k, v, lambda q, rank, source: (late_half(q), ALL))


def _merged_into_all(q, k, v, merge):
    rank, size = dist.get_rank(), dist.get_world_size()
    out, lse = attend(q, k, v, causal_mask(q))
    for step, held in enumerate(packed_ring(k, v)):
        if step == 0:
            continue
        rows, keys = zigzag_rule(q, rank, (rank - step) % size)
        out, lse = merge(out, lse, *attend(q[:, :, rows], *held[:, :, :, keys]))
    return out


def part_for_half_merged_into_all_a(q, k, v):
    def merge(out, lse, part, part_lse):
        both = torch.logaddexp(lse, part_lse)
        old = (lse - both).exp()[..., None] * out
        return old + (part_lse - both).exp()[..., None] * part, both

    return _merged_into_all(q, k, v, merge)


def part_for_half_merged_into_all_b(q, k, v):
    def merge(out, lse, part, part_lse):
        share = torch.sigmoid(part_lse - lse)[..., None]
        return (1 - share) * out + share * part, torch.logaddexp(lse, part_lse)

    return _merged_into_all(q, k, v, merge)
