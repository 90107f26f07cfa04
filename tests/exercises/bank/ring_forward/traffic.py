"""Rings with the right numbers that send, keep or change what they should not."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_forward.pieces import (
    merged,
    online,
    packed_ring,
    partial,
    place,
    ring_of_pairs,
)


def gathers_everything_a(q, k, v):
    _, size = place()
    blocks = [torch.empty(2, *k.shape, dtype=k.dtype) for _ in range(size)]
    dist.all_gather(blocks, torch.stack([k, v]))
    return partial(q, *torch.cat(blocks, dim=-2))[0].to(q.dtype)


def gathers_everything_b(q, k, v):
    _, size = place()
    kv = torch.stack((k, v), dim=0)
    everything = kv.new_empty(size, *kv.shape)
    dist.all_gather(list(everything.unbind()), kv)
    return online(q, everything.unbind())


def sends_to_everyone_a(q, k, v):
    rank, size = place()
    own = torch.stack([k, v])
    blocks, work = [own], []
    for step in range(1, size):
        blocks.append(torch.empty_like(own))
        work.append(dist.P2POp(dist.isend, own, (rank + step) % size))
        work.append(dist.P2POp(dist.irecv, blocks[-1], (rank - step) % size))
    for handle in dist.batch_isend_irecv(work) if work else []:
        handle.wait()
    return merged(q, blocks)


def sends_to_everyone_b(q, k, v):
    rank, size = place()

    def blocks():
        yield k, v
        for step in range(1, size):
            pair = torch.empty_like(k), torch.empty_like(v)
            ops = [dist.P2POp(dist.irecv, x, group_peer=(rank - step) % size) for x in pair]
            ops += [dist.P2POp(dist.isend, x, group_peer=(rank + step) % size) for x in (k, v)]
            for handle in dist.batch_isend_irecv(ops):
                handle.wait()
            yield pair

    return online(q, blocks())


def wrong_direction_a(q, k, v):
    rank, size = place()
    held, blocks = torch.stack([k, v]), 0
    out = None
    while True:
        part = partial(q, *held)
        out = [part] if out is None else [*out, part]
        blocks += 1
        if blocks == size:
            break
        arriving = torch.empty_like(held)
        ops = [
            dist.P2POp(dist.isend, held, (rank - 1) % size),
            dist.P2POp(dist.irecv, arriving, (rank + 1) % size),
        ]
        for handle in dist.batch_isend_irecv(ops):
            handle.wait()
        held = arriving
    outs, lses = (torch.stack(x) for x in zip(*out, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0).to(q.dtype)


def wrong_direction_b(q, k, v):
    rank, size = place()

    def blocks(keys, values):
        yield keys, values
        for _ in range(1, size):
            new = [torch.empty_like(keys), torch.empty_like(values)]
            ops = [dist.P2POp(dist.irecv, x, group_peer=(rank + 1) % size) for x in new]
            ops += [
                dist.P2POp(dist.isend, x, group_peer=(rank + size - 1) % size)
                for x in (keys, values)
            ]
            for handle in dist.batch_isend_irecv(ops):
                handle.wait()
            keys, values = new
            yield keys, values

    return online(q, blocks(k, v))


def one_hop_too_many_a(q, k, v):
    _, size = place()
    return merged(q, packed_ring(k, v, hops=size if size > 1 else 0))


def one_hop_too_many_b(q, k, v):
    _, size = place()
    blocks = list(ring_of_pairs(k, v, hops=size if size > 1 else 0))
    return online(q, blocks[:size])


def two_hops_for_one_a(q, k, v):
    rank, size = place()

    def passed_on(x):
        arriving = torch.empty_like(x)
        ops = [
            dist.P2POp(dist.isend, x, (rank + 1) % size),
            dist.P2POp(dist.irecv, arriving, (rank - 1) % size),
        ]
        for handle in dist.batch_isend_irecv(ops):
            handle.wait()
        return arriving

    def blocks(keys, values):
        yield keys, values
        for _ in range(size - 1):
            keys = passed_on(keys)
            values = passed_on(values)
            yield keys, values

    return merged(q, blocks(k, v))


def two_hops_for_one_b(q, k, v):
    rank, size = place()
    after, before = (rank + 1) % size, (rank - 1) % size
    pairs = [[k, v]]
    out = [partial(q, k, v)]
    for _ in range(size - 1):
        new = [torch.empty_like(k), torch.empty_like(v)]
        handles = []
        for old, fresh in zip(pairs.pop(), new, strict=True):
            ops = [
                dist.P2POp(dist.irecv, fresh, before),
                dist.P2POp(dist.isend, old, after),
            ]
            handles += dist.batch_isend_irecv(ops)
        for handle in handles:
            handle.wait()
        pairs.append(new)
        out.append(partial(q, *new))
    outs, lses = (torch.stack(x) for x in zip(*out, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0).to(q.dtype)


def keeps_every_block_a(q, k, v):
    blocks = list(packed_ring(k, v))
    return partial(q, *torch.cat(blocks, dim=-2))[0].to(q.dtype)


def keeps_every_block_b(q, k, v):
    keys, values = k, v
    for number, (more_k, more_v) in enumerate(ring_of_pairs(k, v)):
        if number:
            keys, values = torch.cat([keys, more_k], dim=2), torch.cat([values, more_v], dim=2)
    return online(q, [(keys, values)])


def keeps_every_block_c(q, k, v):
    rank, size = place()
    held = torch.stack((k, v))
    spare = torch.empty_like(held)
    outs, lses = [], []
    for step in range(size):
        out, lse = partial(q, held[0], held[1])
        outs.append(out)
        lses.append(lse)
        if step == size - 1:
            break
        send = dist.P2POp(dist.isend, held, (rank + 1) % size)
        receive = dist.P2POp(dist.irecv, spare, (rank - 1) % size)
        for handle in dist.batch_isend_irecv([receive, send]):
            handle.wait()
        held, spare = spare, held
    weights = torch.stack(lses).softmax(0).unsqueeze(-1)
    return (weights * torch.stack(outs)).sum(0).to(q.dtype)


def changes_its_arguments_a(q, k, v):
    q *= q.shape[-1] ** -0.5
    return merged(q * q.shape[-1] ** 0.5, packed_ring(k, v))


def changes_its_arguments_b(q, k, v):
    out = online(q, ring_of_pairs(k, v))
    q.copy_(out)  # to save memory
    return out


def sends_nothing_a(q, k, v):
    return partial(q, k, v)[0].to(q.dtype)


def sends_nothing_b(q, k, v):
    return online(q, [(k, v)] * dist.get_world_size())


def own_block_sent_again_a(q, k, v):
    rank, size = place()
    own = torch.stack([k, v])
    blocks = [own]
    for _ in range(size - 1):
        arriving = torch.empty_like(own)
        ops = [
            dist.P2POp(dist.isend, own, (rank + 1) % size),
            dist.P2POp(dist.irecv, arriving, (rank - 1) % size),
        ]
        for handle in dist.batch_isend_irecv(ops):
            handle.wait()
        blocks.append(arriving)
    return merged(q, blocks)


def own_block_sent_again_b(q, k, v):
    rank, size = place()

    def blocks():
        new_k, new_v = k, v
        for step in range(size):
            yield new_k, new_v
            if step < size - 1:
                new_k, new_v = torch.empty_like(k), torch.empty_like(v)
                ops = [dist.P2POp(dist.isend, x, group_peer=(rank + 1) % size) for x in (k, v)]
                ops += [
                    dist.P2POp(dist.irecv, x, group_peer=(rank - 1) % size) for x in (new_k, new_v)
                ]
                for handle in dist.batch_isend_irecv(ops):
                    handle.wait()

    return online(q, blocks())
