"""Causal rings on zig-zag shards, right and wrong.

Two rings that are written differently, each given what a rank sees of another's block: a pair of
slices of queries and keys, or nothing.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

ALL = slice(None)


def _early(q):
    return slice(0, q.shape[2] // 2)


def _late(q):
    return slice(q.shape[2] // 2, None)


def _rule(q, rank, source):
    return (ALL, _early(q)) if source < rank else (_late(q), ALL)


def _attend(q, k, v, mask=None):
    keys, values = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ values, scores.logsumexp(-1)


def _causal(q):
    return torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()


def _merging_ring(q, k, v, rule=_rule, own=_causal, turn=1):
    """Parts merged by their LSEs, hop by hop in a batch."""
    rank, size = dist.get_rank(), dist.get_world_size()
    held = torch.stack([k, v])
    out, lse = _attend(q, k, v, own(q))
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
            part, part_lse = _attend(q[:, :, rows], *held[:, :, :, keys])
            both = torch.logaddexp(lse[:, :, rows], part_lse)
            old = (lse[:, :, rows] - both).exp()[..., None] * out[:, :, rows]
            out[:, :, rows] = old + (part_lse - both).exp()[..., None] * part
            lse[:, :, rows] = both
    return out


def _summing_ring(q, k, v, rule=_rule, own=_causal, turn=1):
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


def _positions(rank, size, tokens):
    pieces = torch.arange(size * tokens).chunk(2 * size)
    return torch.cat([pieces[rank], pieces[-1 - rank]])


def right_a(q, k, v):
    return _summing_ring(q, k, v)


def right_b(q, k, v):  # the own block in three pieces, and halves kept apart
    rank, size, half = dist.get_rank(), dist.get_world_size(), q.shape[2] // 2
    found = {0: [], 1: []}
    queries = q.split(half, dim=2)
    held = torch.stack([k, v])
    for step in range(size):
        source = (rank - step) % size
        early, late = held[..., :half, :], held[..., half:, :]
        mask = torch.ones(half, half, dtype=torch.bool).tril()
        if source == rank:
            found[0].append(_attend(queries[0], *early, mask))
            found[1].append(_attend(queries[1], *early))
            found[1].append(_attend(queries[1], *late, mask))
        elif source < rank:
            for which in (0, 1):
                found[which].append(_attend(queries[which], *early))
        else:
            for keys in (early, late):
                found[1].append(_attend(queries[1], *keys))
        if step < size - 1:
            arriving = torch.empty_like(held)
            send = dist.P2POp(dist.isend, held, group_peer=(rank + 1) % size)
            receive = dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size)
            for handle in dist.batch_isend_irecv([receive, send]):
                handle.wait()
            held = arriving
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
    where = torch.cat([_positions(r, size, q.shape[2]) for r in range(size)])
    return _attend(q, keys, values, where <= _positions(rank, size, q.shape[2])[:, None])[0]


def gathers_everything_b(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    each = []
    for x in (k, v):
        parts = [torch.empty_like(x) for _ in range(size)]
        dist.all_gather(parts, x.contiguous())
        each.append(parts)
    out, lse = _attend(q, k, v, _causal(q))
    for source, block in enumerate(zip(*each, strict=True)):
        if source != rank:
            rows, keys = _rule(q, rank, source)
            part, part_lse = _attend(q[:, :, rows], *(x[:, :, keys] for x in block))
            share = torch.sigmoid(part_lse - lse[:, :, rows])[..., None]
            out[:, :, rows] = torch.lerp(out[:, :, rows], part, share)
            lse[:, :, rows] = torch.logaddexp(lse[:, :, rows], part_lse)
    return out


def wrong_direction_a(q, k, v):
    return _merging_ring(q, k, v, turn=-1)


def wrong_direction_b(q, k, v):
    return _summing_ring(q, k, v, turn=-1)


def masks_whole_blocks_a(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = _positions(rank, size, q.shape[2])
    held, found = torch.stack([k, v]), []
    for step in range(size):
        theirs = _positions((rank - step) % size, size, q.shape[2])
        mask = theirs <= mine[:, None]
        found.append(_attend(q, *held, mask))
        if step < size - 1:
            arriving = torch.empty_like(held)
            send = dist.P2POp(dist.isend, held, group_peer=(rank + 1) % size)
            receive = dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size)
            for handle in dist.batch_isend_irecv([send, receive]):
                handle.wait()
            held = arriving
    outs, lses = (torch.stack(each) for each in zip(*found, strict=True))
    return (lses.softmax(0)[..., None] * outs.nan_to_num(0.0)).sum(0)


def masks_whole_blocks_b(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine, times = _positions(rank, size, q.shape[2]), q.shape[1] // k.shape[1]
    held = torch.cat([k, v], dim=-1)
    weighted, total, top = torch.zeros_like(q), torch.zeros(q.shape[:3]), None
    for step in range(size):
        keys, values = held.repeat_interleave(times, 1).chunk(2, dim=-1)
        later = _positions((rank - step) % size, size, q.shape[2]) > mine[:, None]
        scores = (q @ keys.mT / q.shape[-1] ** 0.5).masked_fill(later, -1e30)
        new = scores.amax(-1) if top is None else torch.maximum(top, scores.amax(-1))
        shrink = torch.zeros_like(new) if top is None else (top - new).exp()
        weights = (scores - new[..., None]).exp().masked_fill(later, 0.0)
        weighted = weighted * shrink[..., None] + weights @ values
        total, top = total * shrink + weights.sum(-1), new
        if step < size - 1:
            arriving = torch.empty_like(held)
            send = dist.P2POp(dist.isend, held, group_peer=(rank + 1) % size)
            receive = dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size)
            for handle in dist.batch_isend_irecv([send, receive]):
                handle.wait()
            held = arriving
    return weighted / total[..., None]


def _no_mask(q):
    return torch.ones_like(_causal(q))


def own_block_unmasked_a(q, k, v):
    return _merging_ring(q, k, v, own=_no_mask)


def own_block_unmasked_b(q, k, v):
    return _summing_ring(q, k, v, own=_no_mask)


def own_block_only_a(q, k, v):
    return _attend(q, k, v, _causal(q))[0]


def own_block_only_b(q, k, v):
    return _summing_ring(q, k, v, lambda q, rank, source: None)


def _contiguous(q, rank, source):
    return (ALL, ALL) if source < rank else None


def rule_of_contiguous_a(q, k, v):
    return _merging_ring(q, k, v, _contiguous)


def rule_of_contiguous_b(q, k, v):
    return _summing_ring(q, k, v, _contiguous)


def _skips_later(q, rank, source):
    return (ALL, _early(q)) if source < rank else None


def later_ranks_skipped_a(q, k, v):
    return _merging_ring(q, k, v, _skips_later)


def later_ranks_skipped_b(q, k, v):
    return _summing_ring(q, k, v, _skips_later)


def _whole_earlier(q, rank, source):
    return (ALL, ALL) if source < rank else (_late(q), ALL)


def whole_block_of_earlier_ranks_a(q, k, v):
    return _merging_ring(q, k, v, _whole_earlier)


def whole_block_of_earlier_ranks_b(q, k, v):
    return _summing_ring(q, k, v, _whole_earlier)


def _whole_later(q, rank, source):
    return (ALL, _early(q)) if source < rank else (ALL, ALL)


def early_queries_see_later_ranks_a(q, k, v):
    return _merging_ring(q, k, v, _whole_later)


def early_queries_see_later_ranks_b(q, k, v):
    return _summing_ring(q, k, v, _whole_later)


def _exchanged(q, rank, source):
    return _rule(q, source, rank)


def rules_exchanged_a(q, k, v):
    return _merging_ring(q, k, v, _exchanged)


def rules_exchanged_b(q, k, v):
    return _summing_ring(q, k, v, _exchanged)


def earlier_rule_for_all_a(q, k, v):
    return _merging_ring(q, k, v, lambda q, rank, source: (ALL, _early(q)))


def earlier_rule_for_all_b(q, k, v):
    return _summing_ring(q, k, v, lambda q, rank, source: (ALL, _early(q)))


def later_rule_for_all_a(q, k, v):
    return _merging_ring(q, k, v, lambda q, rank, source: (_late(q), ALL))


def later_rule_for_all_b(q, k, v):
    return _summing_ring(q, k, v, lambda q, rank, source: (_late(q), ALL))


def _merged_into_all(q, k, v, merge):
    rank, size = dist.get_rank(), dist.get_world_size()
    held = torch.stack([k, v])
    out, lse = _attend(q, k, v, _causal(q))
    for step in range(1, size):
        arriving = torch.empty_like(held)
        send = dist.P2POp(dist.isend, held, group_peer=(rank + 1) % size)
        receive = dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size)
        for handle in dist.batch_isend_irecv([send, receive]):
            handle.wait()
        held = arriving
        rows, keys = _rule(q, rank, (rank - step) % size)
        out, lse = merge(out, lse, *_attend(q[:, :, rows], *held[:, :, :, keys]))
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
