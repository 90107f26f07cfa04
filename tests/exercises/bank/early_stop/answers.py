"""Causal rings that stop early, right and wrong."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.causal_ring.answers import (
    by_owner,
    gathers_everything_b,  # noqa: F401
)
from tests.exercises.bank.causal_ring.pieces import by_merging, masked, table, triangle
from tests.exercises.bank.ring_forward.pieces import merge, place, ring_of_pairs
from tests.exercises.bank.ring_forward.traffic import gathers_everything_a  # noqa: F401


def ring(sends, receives):
    """The blocks in hand, where ``sends(rank, size, step)`` and ``receives(...)`` say who does."""

    def blocks(k, v):
        rank, size = place()
        held = torch.stack([k, v])
        for step in range(size):
            arriving, ops = torch.empty_like(held), []
            if step < size - 1 and sends(rank, size, step):
                ops.append(dist.P2POp(dist.isend, held, (rank + 1) % size))
            if step < size - 1 and receives(rank, size, step):
                ops.append(dist.P2POp(dist.irecv, arriving, (rank - 1) % size))
            handles = dist.batch_isend_irecv(ops) if ops else []
            yield held
            for handle in handles:
                handle.wait()
            if step < size - 1 and receives(rank, size, step):
                held = arriving

    return blocks


def by_counts(sends, receives):
    """The same with K and V apart, by how many blocks a rank sends and receives."""

    def blocks(k, v):
        rank, size = place()
        pair = [k.contiguous(), v.contiguous()]
        left, coming = sends(rank, size), receives(rank, size)
        for _ in range(size):
            yield pair
            new, ops = [torch.empty_like(x) for x in pair], []
            if coming:
                ops += [dist.P2POp(dist.irecv, x, (rank - 1) % size) for x in new]
            if left:
                ops += [dist.P2POp(dist.isend, x, (rank + 1) % size) for x in pair]
            for handle in dist.batch_isend_irecv(ops) if ops else []:
                handle.wait()
            pair = new if coming else pair
            left, coming = max(0, left - 1), max(0, coming - 1)

    return blocks


def sending(rank, size, step):
    return step <= rank < size - 1


def receiving(rank, size, step):
    return step < rank


def sent(rank, size):
    return rank + 1 if rank < size - 1 else 0


def received(rank, size):
    return rank


def right_a(q, k, v):
    return by_merging(q, k, v, by_owner, ring(sending, receiving))


def right_b(q, k, v):
    return by_merging(q, k, v, by_owner, by_counts(sent, received))


def right_c(q, k, v):
    """No batch at all: without a circle no rank waits in one, as rank 0 receives nothing."""
    rank, size = place()
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    held = torch.stack([k, v])
    for step in range(size):
        if step <= rank < size - 1:
            dist.send(held, rank + 1)
        if step < rank:
            held = torch.empty_like(held)
            dist.recv(held, rank - 1)
            out, lse = merge(out, lse, *masked(q, *held))
    return out


def receives_into_what_is_sent_a(q, k, v):
    rank, size = place()
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    held = torch.stack([k, v])
    for step in range(size - 1):
        ops = []
        if sending(rank, size, step):
            ops.append(dist.P2POp(dist.isend, held, rank + 1))
        if step < rank:
            ops.append(dist.P2POp(dist.irecv, held, rank - 1))
        for handle in dist.batch_isend_irecv(ops) if ops else []:
            handle.wait()
        if step < rank:
            out, lse = merge(out, lse, *masked(q, *held))
    return out


def receives_into_what_is_sent_b(q, k, v):
    rank, size = place()
    state, held = masked(q, k, v, triangle(q.shape[2])), torch.stack([k, v])
    for step in range(min(rank + 1, size - 1)):
        handles = [dist.isend(held, rank + 1)] if sending(rank, size, step) else []
        if step < rank:
            dist.irecv(held, rank - 1).wait()
            state = merge(*state, *masked(q, *held))
        for handle in handles:
            handle.wait()
    return state[0]


def reads_before_wait_a(q, k, v):
    rank, size = place()
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    held = torch.stack([k, v])
    for step in range(size - 1):
        arriving, ops = torch.empty_like(held), []
        if sending(rank, size, step):
            ops.append(dist.P2POp(dist.isend, held, rank + 1))
        if step < rank:
            ops.append(dist.P2POp(dist.irecv, arriving, rank - 1))
        handles = dist.batch_isend_irecv(ops) if ops else []
        if step < rank:
            out, lse = merge(out, lse, *masked(q, *arriving))
            held = arriving
        for handle in handles:
            handle.wait()
    return out


def reads_before_wait_b(q, k, v):
    rank, size = place()
    state, held = masked(q, k, v, triangle(q.shape[2])), torch.stack([k, v])
    for step in range(min(rank + 1, size - 1)):
        if sending(rank, size, step):
            dist.send(held, rank + 1)
        if step < rank:
            held = torch.zeros(held.shape)
            coming = dist.irecv(held, rank - 1)
            state = merge(*state, *masked(q, *held))
            coming.wait()
    return state[0]


def handle_not_waited_for_a(q, k, v):
    rank, size = place()
    state, held = masked(q, k, v, triangle(q.shape[2])), torch.stack([k, v])
    for step in range(min(rank + 1, size - 1)):
        if sending(rank, size, step):
            dist.isend(held, rank + 1)
        if step < rank:
            held = torch.empty_like(held)
            dist.irecv(held, rank - 1).wait()
            state = merge(*state, *masked(q, *held))
    return state[0]


def handle_not_waited_for_b(q, k, v):
    rank, size = place()
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    held, kept = torch.stack([k, v]), []
    for step in range(size - 1):
        if sending(rank, size, step):
            kept.append(dist.isend(held, rank + 1))
        if step < rank:
            held = torch.zeros(held.shape)
            dist.recv(held, rank - 1)
            out, lse = merge(out, lse, *masked(q, *held))
    return out


def last_rank_sends_on_a(q, k, v):
    return by_merging(
        q, k, v, by_owner, ring(lambda rank, size, step: step <= rank and size > 1, receiving)
    )


def last_rank_sends_on_b(q, k, v):
    def sends(rank, size):
        return min(rank + 1, size - 1)

    return by_merging(q, k, v, by_owner, by_counts(sends, received))


def sends_more_than_is_received_a(q, k, v):
    return by_merging(q, k, v, by_owner, ring(lambda rank, size, step: rank < size - 1, receiving))


def sends_more_than_is_received_b(q, k, v):
    def sends(rank, size):
        return min(rank + 2, size) if rank < size - 1 else 0

    return by_merging(q, k, v, by_owner, by_counts(sends, received))


def stops_too_soon_a(q, k, v):
    return by_merging(
        q, k, v, by_owner, ring(lambda rank, size, step: step < rank < size - 1, receiving)
    )


def stops_too_soon_b(q, k, v):
    """One block from each rank, its own, and not what has come."""
    return by_merging(
        q, k, v, by_owner, by_counts(lambda rank, size: int(rank < size - 1), received)
    )


def direct(k, v):
    """The blocks of earlier ranks, from their owners."""
    rank, size = place()
    own = torch.stack([k, v])
    came = [torch.empty_like(own) for _ in range(rank)]
    ops = [dist.P2POp(dist.isend, own, other) for other in range(rank + 1, size)]
    ops += [dist.P2POp(dist.irecv, block, other) for other, block in enumerate(came)]
    for handle in dist.batch_isend_irecv(ops) if ops else []:
        handle.wait()
    return came


def sends_straight_to_those_who_need_a(q, k, v):
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    for block in direct(k, v):
        out, lse = merge(out, lse, *masked(q, *block))
    return out


def sends_straight_to_those_who_need_b(q, k, v):
    rank, size = place()
    parts, own = [masked(q, k, v, triangle(q.shape[2]))], torch.stack([k, v])
    for owner in range(size):
        block = torch.empty_like(own)
        if owner == rank:
            for other in range(rank + 1, size):
                dist.send(own, other)
        elif owner < rank:
            dist.recv(block, owner)
            parts.append(masked(q, *block))
    outs, lses = map(torch.stack, zip(*parts, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0)


def sends_in_every_step_a(q, k, v):
    return by_merging(q, k, v, by_owner)


def sends_in_every_step_b(q, k, v):
    """All but the last rank, in every step."""
    sends = ring(lambda rank, size, step: rank < size - 1, lambda rank, size, step: rank > 0)
    return by_merging(q, k, v, by_owner, sends)


def goes_round_the_end_a(q, k, v):
    def sends(rank, size, step):
        return step <= rank and size > 1

    def receives(rank, size, step):
        return sends((rank - 1) % size, size, step)

    return by_merging(q, k, v, by_owner, ring(sends, receives))


def goes_round_the_end_b(q, k, v):
    def sends(rank, size):
        return min(rank + 1, size - 1)

    def receives(rank, size):
        return rank or size - 1

    return by_merging(q, k, v, by_owner, by_counts(sends, receives))


def one_step_too_long_a(q, k, v):
    def sends(rank, size, step):
        return step <= rank + 1 and rank < size - 1

    def receives(rank, size, step):
        return rank > 0 and step <= rank

    return by_merging(q, k, v, by_owner, ring(sends, receives))


def one_step_too_long_b(q, k, v):
    def sends(rank, size):
        return min(rank + 2, size - 1) if rank < size - 1 else 0

    def receives(rank, size):
        return sends(rank - 1, size) if rank else 0

    return by_merging(q, k, v, by_owner, by_counts(sends, receives))


def hops_of_the_block_for_those_of_the_rank_a(q, k, v):
    def sends(rank, size, step):
        return step < size - 1 - rank

    def receives(rank, size, step):
        return rank > 0 and sends(rank - 1, size, step)

    return by_merging(q, k, v, by_owner, ring(sends, receives))


def hops_of_the_block_for_those_of_the_rank_b(q, k, v):
    def receives(rank, size):
        return size - rank if rank else 0

    return by_merging(q, k, v, by_owner, by_counts(lambda rank, size: size - 1 - rank, receives))


def no_mask_a(q, k, v):
    return by_merging(q, k, v, lambda rank, owner, tokens: True, ring_of_pairs)


def no_mask_b(q, k, v):
    blocks = ring(lambda rank, size, step: True, lambda rank, size, step: True)
    parts = [masked(q, *block) for block in blocks(k, v)]
    outs, lses = map(torch.stack, zip(*parts, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0)


def own_block_not_masked_a(q, k, v):
    return by_merging(q, k, v, lambda rank, owner, tokens: owner <= rank, ring(sending, receiving))


def own_block_not_masked_b(q, k, v):
    rank, _ = place()
    parts = []
    for step, pair in enumerate(by_counts(sent, received)(k, v)):
        if step <= rank:
            parts.append(masked(q, *pair))
    outs, lses = map(torch.stack, zip(*parts, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0)


def own_mask_on_every_block_a(q, k, v):
    def allowed(rank, owner, tokens):
        return triangle(tokens) if owner <= rank else False

    return by_merging(q, k, v, allowed, ring(sending, receiving))


def own_mask_on_every_block_b(q, k, v):
    def allowed(rank, owner, tokens):
        return owner <= rank and table(rank, rank, tokens)

    return by_merging(q, k, v, allowed, by_counts(sent, received))


def a_position_does_not_see_itself_a(q, k, v):
    def allowed(rank, owner, tokens):
        return triangle(tokens, -1) if owner == rank else owner < rank

    return by_merging(q, k, v, allowed, ring(sending, receiving))


def a_position_does_not_see_itself_b(q, k, v):
    def allowed(rank, owner, tokens):
        rows = torch.arange(tokens)
        return rows < rows[:, None] if owner == rank else owner < rank

    return by_merging(q, k, v, allowed, by_counts(sent, received))
