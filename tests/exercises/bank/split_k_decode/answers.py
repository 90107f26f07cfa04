"""Decode on many ranks as people write it, right and wrong."""

from __future__ import annotations

import torch
import torch.distributed as dist


def _scores(q, k, scale=True):
    keys = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    return q @ keys.mT / (q.shape[-1] ** 0.5 if scale else 1.0)


def _values(q, v):
    return v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def _attend(q, k, v, scale=True):
    scores = _scores(q, k, scale)
    return scores.softmax(-1) @ _values(q, v), scores.logsumexp(-1)


def _gather(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor.contiguous())
    return parts


def _merge(out, lse, new, new_lse):
    both = torch.logaddexp(lse, new_lse)
    old = (lse - both).exp()[..., None] * out
    return old + (new_lse - both).exp()[..., None] * new, both


def _safe_merge(out, lse, new, new_lse):
    share = torch.sigmoid(new_lse - lse).nan_to_num(0.0)[..., None]
    return out + share * (new - out), torch.logaddexp(lse, new_lse)


def _own_sums(q, k, v):
    """Numerator and denominator with the rank's own maximum."""
    scores = _scores(q, k)
    weights = (scores - scores.amax(-1, keepdim=True)).exp() if k.shape[2] else scores
    return torch.cat([weights @ _values(q, v), weights.sum(-1, keepdim=True)], -1)


def _largest(scores):
    if scores.shape[-1]:
        return scores.amax(-1, keepdim=True)
    return torch.full((*scores.shape[:-1], 1), -torch.inf)


def right_a(q, k, v):  # maximum, then sums, without a softmax
    scores = _scores(q, k)
    top = _largest(scores)
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    weights = torch.exp(scores - top)
    sums = torch.cat([weights @ _values(q, v), weights.sum(-1, keepdim=True)], dim=-1)
    dist.all_reduce(sums)
    return sums[..., :-1] / sums[..., -1:]


def right_b(q, k, v):  # out and LSE gathered apart
    out, lse = _attend(q, k, v)
    outs, lses = torch.stack(_gather(out)), torch.stack(_gather(lse))
    return torch.einsum("wbhq,wbhqd->bhqd", lses.softmax(0), outs)


def right_c(q, k, v):  # packed, merged pair by pair in the order of the ranks
    out, lse = _attend(q, k, v)
    first, *others = _gather(torch.cat([out, lse[..., None]], -1))
    out, lse = first[..., :-1], first[..., -1]
    for part in others:
        out, lse = _safe_merge(out, lse, part[..., :-1], part[..., -1])
    return out


def right_d(q, k, v):  # LSEs reduced by hand, weighted outs summed
    out, lse = _attend(q, k, v)
    lses = torch.stack(_gather(lse))
    out = out * (lse - lses.logsumexp(0)).exp()[..., None]
    dist.all_reduce(out)
    return out


def result_on_one_rank_a(q, k, v):
    scores = _scores(q, k)
    top = _largest(scores)
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    weights = torch.exp(scores - top)
    sums = torch.cat([weights @ _values(q, v), weights.sum(-1, keepdim=True)], dim=-1)
    dist.reduce(sums, dst=0)
    return sums[..., :-1] / sums[..., -1:]


def result_on_one_rank_b(q, k, v):
    out, lse = _attend(q, k, v)
    packed = torch.cat([out, lse[..., None]], -1)
    rank, size = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(packed) for _ in range(size)] if rank == 0 else None
    dist.gather(packed, parts, dst=0)
    if rank:
        return out
    stacked = torch.stack(parts)
    return (stacked[..., -1:].softmax(0) * stacked[..., :-1]).sum(0)


def _ring_of(q, k, v, attend):
    rank, size = dist.get_rank(), dist.get_world_size()
    held, found = torch.stack([k, v]), []
    for step in range(size):
        found.append(attend(q, *held))
        if step < size - 1:
            arriving = torch.empty_like(held)
            for handle in dist.batch_isend_irecv(
                [
                    dist.P2POp(dist.isend, held, group_peer=(rank + 1) % size),
                    dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size),
                ]
            ):
                handle.wait()
            held = arriving
    return found


def ring_of_kv_a(q, k, v):
    out = lse = None
    for part, part_lse in _ring_of(q, k, v, _attend):
        if out is None:
            out, lse = part, part_lse
        else:
            out, lse = _safe_merge(out, lse, part, part_lse)
    return out


def ring_of_kv_b(q, k, v):
    blocks = _ring_of(q, k, v, lambda _q, keys, values: (keys.clone(), values.clone()))
    keys, values = (torch.cat(each, dim=2) for each in zip(*blocks, strict=True))
    return _attend(q, keys, values)[0]


def results_in_float64_a(q, k, v):
    out, lse = _attend(q.double(), k.double(), v.double())
    parts = torch.stack(_gather(torch.cat([out, lse[..., None]], -1)))
    return (parts[..., -1:].softmax(0) * parts[..., :-1]).sum(0).to(q.dtype)


def results_in_float64_b(q, k, v):
    out, lse = _attend(*(x.to(torch.float64) for x in (q, k, v)))
    outs, lses = _gather(out), _gather(lse)
    total = torch.stack(lses).logsumexp(0)
    merged = sum((a - total).exp()[..., None] * b for a, b in zip(lses, outs, strict=True))
    return merged.float()


def gathers_the_kv_a(q, k, v):
    keys, values = torch.cat(_gather(k), dim=2), torch.cat(_gather(v), dim=2)
    return _attend(q, keys, values)[0]


def gathers_the_kv_b(q, k, v):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, torch.tensor([k.shape[2]]))
    most = int(max(lengths))
    packed = torch.zeros(2, *k.shape[:2], most, k.shape[3])
    packed[0, :, :, : k.shape[2]], packed[1, :, :, : k.shape[2]] = k, v
    blocks = [part[..., : int(n), :] for part, n in zip(_gather(packed), lengths, strict=True)]
    return _attend(q, *torch.cat(blocks, dim=-2))[0]


def too_many_collectives_a(q, k, v):
    scores = _scores(q, k)
    top = _largest(scores)
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    weights = torch.exp(scores - top)
    total, weighted = weights.sum(-1, keepdim=True), weights @ _values(q, v)
    dist.all_reduce(total)
    dist.all_reduce(weighted)
    return weighted / total


def too_many_collectives_b(q, k, v):
    out, lse = _attend(q, k, v)
    mine = torch.cat([out, lse[..., None]], -1)
    parts = []
    for rank in range(dist.get_world_size()):
        part = mine.clone() if rank == dist.get_rank() else torch.empty_like(mine)
        dist.broadcast(part, src=rank)
        parts.append(part)
    stacked = torch.stack(parts)
    return (stacked[..., -1:].softmax(0) * stacked[..., :-1]).sum(0)


def other_bits_on_other_ranks_a(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    out, lse = _attend(q, k, v)
    parts = _gather(torch.cat([out, lse[..., None]], -1))
    for step in range(1, size):
        part = parts[(rank - step) % size]
        out, lse = _safe_merge(out, lse, part[..., :-1], part[..., -1])
    return out


def other_bits_on_other_ranks_b(q, k, v):
    out, lse = _attend(q, k, v)
    outs, lses = _gather(out), _gather(lse)
    total = torch.stack(lses).logsumexp(0)
    merged = (lse - total).exp()[..., None] * out
    for rank, (part, part_lse) in enumerate(zip(outs, lses, strict=True)):
        if rank != dist.get_rank():
            merged = merged + (part_lse - total).exp()[..., None] * part
    return merged


def sum_of_outs_a(q, k, v):
    out, _ = _attend(q, k, v)
    dist.all_reduce(out)
    return out


def sum_of_outs_b(q, k, v):
    return sum(_gather(_attend(q, k, v)[0]))


def mean_of_outs_a(q, k, v):
    out, _ = _attend(q, k, v)
    dist.all_reduce(out)
    return out / dist.get_world_size()


def mean_of_outs_b(q, k, v):
    return torch.stack(_gather(_attend(q, k, v)[0])).mean(dim=0)


def weights_by_keys_a(q, k, v):
    out, _ = _attend(q, k, v)
    packed = torch.cat([out * k.shape[2], torch.full_like(out[..., :1], k.shape[2])], -1)
    dist.all_reduce(packed)
    return packed[..., :-1] / packed[..., -1:]


def weights_by_keys_b(q, k, v):
    out, _ = _attend(q, k, v)
    keys = torch.tensor([float(k.shape[2])])
    outs, counts = torch.stack(_gather(out)), torch.stack(_gather(keys))
    shares = (counts / counts.sum()).view(-1, 1, 1, 1, 1)
    return (shares * outs).sum(0)


def maximum_not_reduced_a(q, k, v):
    sums = _own_sums(q, k, v)
    dist.all_reduce(sums)
    return sums[..., :-1] / sums[..., -1:]


def maximum_not_reduced_b(q, k, v):
    sums = torch.stack(_gather(_own_sums(q, k, v))).sum(0)
    weighted, total = sums.split([q.shape[-1], 1], dim=-1)
    return weighted / total


def no_scale_a(q, k, v):
    out, lse = _attend(q, k, v, scale=False)
    parts = torch.stack(_gather(torch.cat([out, lse[..., None]], -1)))
    return (parts[..., -1:].softmax(0) * parts[..., :-1]).sum(0)


def no_scale_b(q, k, v):
    scores = _scores(q, k, scale=False)
    top = _largest(scores)
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    weights = (scores - top).exp()
    sums = torch.cat([weights @ _values(q, v), weights.sum(-1, keepdim=True)], -1)
    dist.all_reduce(sums)
    return sums[..., :-1] / sums[..., -1:]


def overflows_a(q, k, v):
    weights = _scores(q, k).exp()
    sums = torch.cat([weights @ _values(q, v), weights.sum(-1, keepdim=True)], -1)
    dist.all_reduce(sums)
    return sums[..., :-1] / sums[..., -1:]


def overflows_b(q, k, v):
    out, lse = _attend(q, k, v)
    weight = lse.exp()[..., None]
    parts = torch.stack(_gather(torch.cat([weight * out, weight], -1))).sum(0)
    return parts[..., :-1] / parts[..., -1:]


def rank_without_a_key_a(q, k, v):
    scores = _scores(q, k)
    top = scores.amax(-1, keepdim=True)
    dist.all_reduce(top, op=dist.ReduceOp.MAX)
    weights = (scores - top).exp()
    sums = torch.cat([weights @ _values(q, v), weights.sum(-1, keepdim=True)], -1)
    dist.all_reduce(sums)
    return sums[..., :-1] / sums[..., -1:]


def rank_without_a_key_b(q, k, v):
    out, lse = _attend(q, k, v)
    first, *others = _gather(torch.cat([out, lse[..., None]], -1))
    out, lse = first[..., :-1], first[..., -1]
    for part in others:
        out, lse = _merge(out, lse, part[..., :-1], part[..., -1])
    return out
