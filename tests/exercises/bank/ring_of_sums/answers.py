"""Rings that end: right ones, and some that send or add up what they should not."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_of_sums.pieces import batch, collected, place, running, wait
from tests.exercises.bank.swap.answers import exchanged


def right_a(mine):
    return running(mine, exchanged)


def right_b(mine):
    return collected(mine, lambda seen, after, before: exchanged(seen[-1], after, before))


def right_c(mine):
    """Neighbours without a remainder, and hops counted down."""
    rank, size, *_ = place()
    total, held, left = mine.clone(), mine.contiguous(), size
    while left > 1:
        arriving = torch.empty_like(held)
        wait(batch(held, arriving, 0 if rank == size - 1 else rank + 1, (rank or size) - 1))
        total += arriving
        held, left = arriving, left - 1
    return total


def uses_a_collective_a(mine):
    total = mine.contiguous().clone()
    dist.all_reduce(total)
    return total


def uses_a_collective_b(mine):
    each = [torch.empty(mine.shape) for _ in range(dist.get_world_size())]
    dist.all_gather(each, mine.contiguous())
    return torch.stack(each).sum(0)


def relies_on_tags_a(mine):
    def hop(held, after, before):
        new = torch.empty_like(held)
        ops = [dist.P2POp(dist.isend, held[row], after, tag=row) for row in (0, 1)]
        ops += [dist.P2POp(dist.irecv, new[row], before, tag=row) for row in (1, 0)]
        wait(dist.batch_isend_irecv(ops))
        return new

    return running(mine, hop)


def relies_on_tags_b(mine):
    def hop(seen, after, before):
        rows = [torch.empty_like(row) for row in seen[-1]]
        first, second = (row.contiguous() for row in seen[-1])
        ops = [
            dist.P2POp(dist.irecv, rows[0], before, tag=7),
            dist.P2POp(dist.irecv, rows[1], before, tag=8),
            dist.P2POp(dist.isend, second, after, tag=8),
            dist.P2POp(dist.isend, first, after, tag=7),
        ]
        wait(dist.batch_isend_irecv(ops))
        return torch.stack(rows)

    return collected(mine, hop)


def takes_turns_a(mine):
    """Rank 0 receives first."""

    def hop(seen, after, before):
        arriving = torch.zeros(mine.shape)
        if dist.get_rank() == 0:
            dist.recv(arriving, before)
            dist.send(seen[-1], after)
        else:
            dist.send(seen[-1], after)
            dist.recv(arriving, before)
        return arriving

    return collected(mine, hop)


def takes_turns_b(mine):
    """Odd ranks receive first."""

    def hop(held, after, before):
        arriving, odd = torch.zeros(mine.shape), dist.get_rank() % 2
        if not odd:
            dist.send(held, after)
        dist.recv(arriving, before)
        if odd:
            dist.send(held, after)
        return arriving

    return running(mine, hop)


def wrong_direction_a(mine):
    return running(mine, lambda held, after, before: exchanged(held, before, after))


def wrong_direction_b(mine):
    rank, size, *_ = place()
    seen = [mine.contiguous()]
    while len(seen) < size:
        arriving = torch.empty_like(seen[0])
        wait(batch(seen[-1], arriving, rank - 1 if rank else size - 1, (rank + 1) % size))
        seen.append(arriving)
    return torch.stack(seen).sum(0)


def one_hop_too_many_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), torch.zeros(mine.shape)
    for _ in range(size if size > 1 else 0):
        total = total + held
        held = exchanged(held, after, before)
    return total if size > 1 else mine.clone()


def one_hop_too_many_b(mine):
    _, size, after, before = place()
    seen = [mine.contiguous()]
    while size > 1 and len(seen) <= size:
        arriving = torch.empty(mine.shape)
        wait(batch(seen[-1], arriving, after, before))
        seen.append(arriving)
    return torch.stack(seen[:size]).sum(0)


def sums_travel_a(mine):
    _, size, after, before = place()
    total = mine.contiguous()
    for _ in range(size - 1):
        total = total + exchanged(total, after, before)
    return total


def sums_travel_b(mine):
    return collected(mine, lambda seen, after, before: exchanged(sum(seen), after, before))


def own_sent_again_a(mine):
    return running(mine, lambda _held, after, before: exchanged(mine, after, before))


def own_sent_again_b(mine):
    _, size, after, before = place()
    seen, own = [mine], mine.contiguous()
    while len(seen) < size:
        arriving = torch.empty_like(own)
        wait(batch(own, arriving, after, before))
        seen.append(arriving)
    return sum(seen)


def last_one_missing_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), torch.zeros(mine.shape)
    for _ in range(size - 1):
        total += held
        held = exchanged(held, after, before)
    return total if size > 1 else mine.clone()


def last_one_missing_b(mine):
    _, size, after, before = place()
    seen = [mine.contiguous()]
    while len(seen) < size:
        seen.append(exchanged(seen[-1], after, before))
    return torch.stack(seen[: max(1, size - 1)]).sum(0)


def own_missing_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), torch.zeros(mine.shape)
    for _ in range(size - 1):
        held = exchanged(held, after, before)
        total += held
    return total


def own_missing_b(mine):
    return right_b(mine) - mine


def changes_its_argument_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous().clone(), mine
    for _ in range(size - 1):
        held = exchanged(held, after, before)
        total += held
    return total


def changes_its_argument_b(mine):
    """What arrives is copied into the argument."""
    _, size, after, before = place()
    total = torch.zeros(mine.shape)
    for step in range(size):
        total = total + mine
        if step < size - 1:
            mine.copy_(exchanged(mine, after, before))
    return total
