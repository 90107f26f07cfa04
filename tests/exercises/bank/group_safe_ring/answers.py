"""Rings on a group of ranks, and rings that mix the two ways of counting them."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_forward.pieces import merge, merged, online, partial


def blocks(k, v, number, size, peers, group):
    """The block in hand of each step; `peers` makes the arguments of a send and a receive."""
    held = torch.stack([k, v])
    for step in range(size):
        handles = []
        if step < size - 1:
            arriving = torch.empty_like(held)
            after, before = (number + 1) % size, (number - 1) % size
            ops = [
                dist.P2POp(dist.isend, held, group=group, **peers(after)),
                dist.P2POp(dist.irecv, arriving, group=group, **peers(before)),
            ]
            handles = dist.batch_isend_irecv(ops)
        yield held
        for handle in handles:
            handle.wait()
        if handles:
            held = arriving


def passed_on(pair, after, before, group):
    """K and V for the next step, from and to ranks of the world."""
    new = [torch.empty_like(x) for x in pair]
    ops = [dist.P2POp(dist.isend, x.contiguous(), after, group) for x in pair]
    ops += [dist.P2POp(dist.irecv, x, before, group) for x in new]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    return new


def round_trip(q, k, v, after, before, size, group):
    pair, state = [k, v], partial(q, k, v)
    for _ in range(size - 1):
        pair = passed_on(pair, after, before, group)
        state = merge(*state, *partial(q, *pair))
    return state[0].to(q.dtype)


def in_group(number):
    return {"group_peer": number}


def in_world(number):
    return {"peer": number}


def right_a(q, k, v, group):
    number, size = dist.get_rank(group), dist.get_world_size(group)
    return merged(q, blocks(k, v, number, size, in_group, group))


def right_b(q, k, v, group):
    ranks = dist.get_process_group_ranks(group)
    place = ranks.index(dist.get_rank())
    after, before = ranks[(place + 1) % len(ranks)], ranks[place - 1]
    return round_trip(q, k, v, after, before, len(ranks), group)


def group_number_as_world_number_a(q, k, v, group):
    number, size = dist.get_rank(group), dist.get_world_size(group)
    return merged(q, blocks(k, v, number, size, in_world, group))


def group_number_as_world_number_b(q, k, v, group):
    place, size = group.rank(), group.size()
    return round_trip(q, k, v, (place + 1) % size, (place + size - 1) % size, size, group)


def world_number_as_group_number_a(q, k, v, group):
    return merged(q, blocks(k, v, dist.get_rank(), group.size(), in_group, group))


def world_number_as_group_number_b(q, k, v, group):
    size, me = dist.get_world_size(group), dist.get_rank()
    held, out = torch.stack((k, v)), None
    for step in range(size):
        part = partial(q, *held)
        out = part if out is None else merge(*out, *part)
        if step + 1 < size:
            new = torch.empty_like(held)
            ops = [
                dist.P2POp(dist.irecv, new, group=group, group_peer=(me + size - 1) % size),
                dist.P2POp(dist.isend, held, group=group, group_peer=(me + 1) % size),
            ]
            for handle in dist.batch_isend_irecv(ops):
                handle.wait()
            held = new
    return out[0].to(q.dtype)


def neighbours_by_world_number_a(q, k, v, group):
    me, world = dist.get_rank(), dist.get_world_size()
    return round_trip(q, k, v, (me + 1) % world, (me - 1) % world, group.size(), group)


def neighbours_by_world_number_b(q, k, v, group):
    me, world, size = dist.get_rank(), dist.get_world_size(), dist.get_world_size(group)

    def steps(held):
        yield held
        for _ in range(1, size):
            arriving = torch.empty_like(held)
            send = dist.P2POp(dist.isend, held, peer=(me + 1) % world, group=group)
            receive = dist.P2POp(dist.irecv, arriving, peer=(me + world - 1) % world, group=group)
            for handle in dist.batch_isend_irecv([receive, send]):
                handle.wait()
            held = arriving
            yield held

    return online(q, steps(torch.stack([k, v])))


def ignores_the_group_a(q, k, v, group):
    return merged(q, blocks(k, v, dist.get_rank(), dist.get_world_size(), in_group, None))


def ignores_the_group_b(q, k, v, group):
    me, world = dist.get_rank(), dist.get_world_size()
    return round_trip(q, k, v, (me + 1) % world, (me - 1) % world, world, None)


def world_size_for_group_size_a(q, k, v, group):
    return merged(q, blocks(k, v, dist.get_rank(group), dist.get_world_size(), in_group, group))


def world_size_for_group_size_b(q, k, v, group):
    """The right neighbours, but as many steps as the world has ranks."""
    ranks = dist.get_process_group_ranks(group)
    place = ranks.index(dist.get_rank())
    after, before = ranks[(place + 1) % len(ranks)], ranks[place - 1]
    return round_trip(q, k, v, after, before, dist.get_world_size(), group)


def gathers_everything_a(q, k, v, group):
    both = torch.stack([k, v])
    parts = [torch.empty_like(both) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, both, group=group)
    return partial(q, *torch.cat(parts, dim=-2))[0].to(q.dtype)


def gathers_everything_b(q, k, v, group):
    size = group.size()
    keys, values = (x.new_empty(size, *x.shape) for x in (k, v))
    for target, x in ((keys, k), (values, v)):
        dist.all_gather(list(target.unbind()), x.contiguous(), group=group)
    return online(q, zip(keys, values, strict=True))
