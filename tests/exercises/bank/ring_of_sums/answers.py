"""Rings that add up, right and wrong."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.swap.answers import exchanged


def place():
    """Rank, world size, next rank, rank before."""
    rank, size = dist.get_rank(), dist.get_world_size()
    return rank, size, (rank + 1) % size, (rank - 1) % size


def batch(sent, arriving, to, source):
    sending = dist.P2POp(dist.isend, sent, to)
    return dist.batch_isend_irecv([sending, dist.P2POp(dist.irecv, arriving, source)])


def wait(handles):
    for handle in handles:
        handle.wait()


def right_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), torch.zeros(mine.shape)
    for step in range(size):
        total = total + held
        if step < size - 1:
            held = exchanged(held, after, before)
    return total


def right_b(mine):
    """All that was seen is kept, and added at the end."""
    rank, size, *_ = place()
    seen = [mine.contiguous()]
    while len(seen) < size:
        seen.append(exchanged(seen[-1], (rank + 1) % size, rank - 1 if rank else size - 1))
    return torch.stack(seen).sum(0)


def right_c(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(1, size):
        arriving = torch.empty_like(held)
        wait(batch(held, arriving, after, before))
        total += arriving
        held = arriving
    return total


def sends_gaps_a(mine):
    _, size, after, before = place()
    held, total = mine, mine.clone()
    for _ in range(size - 1):
        arriving = torch.empty(mine.shape)
        wait(batch(held, arriving, after, before))
        held, total = arriving, total + arriving
    return total


def sends_gaps_b(mine):
    """Each part is sent as it is, the first one too."""
    _, size, after, before = place()
    seen = [mine]
    while len(seen) < size:
        arriving = torch.zeros(mine.shape)
        receiving = dist.P2POp(dist.irecv, arriving, before)
        wait(dist.batch_isend_irecv([receiving, dist.P2POp(dist.isend, seen[-1], after)]))
        seen.append(arriving)
    return torch.stack(seen).sum(0)


def receives_into_what_is_sent_a(mine):
    _, size, after, before = place()
    held = mine.clone(memory_format=torch.contiguous_format)
    total = mine.clone()
    for _ in range(size - 1):
        wait(batch(held, held, after, before))
        total += held
    return total


def receives_into_what_is_sent_b(mine):
    _, size, after, before = place()
    held, parts = mine.contiguous().clone(), [mine]
    for _ in range(size - 1):
        works = [dist.isend(held, after), dist.irecv(held, before)]
        wait(works)
        parts.append(held.clone())
    return sum(parts)


def reads_before_wait_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        arriving = torch.empty_like(held)
        handles = batch(held, arriving, after, before)
        total += arriving
        wait(handles)
        held = arriving
    return total


def reads_before_wait_b(mine):
    _, size, after, before = place()
    seen = [mine.contiguous()]
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        handles = batch(seen[-1], arriving, after, before)
        seen.append(arriving.clone())
        wait(handles)
    return torch.stack(seen).sum(0)


def handle_not_waited_for_a(mine):
    rank, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        if rank == 0:
            dist.recv(arriving, before)
            dist.isend(held, after)
        else:
            dist.send(held, after)
            dist.recv(arriving, before)
        held, total = arriving, total + arriving
    return total


def handle_not_waited_for_b(mine):
    rank, size, after, before = place()
    seen, handles = [mine.contiguous()], []
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        if rank == 0:
            handles.append(dist.isend(seen[-1], after))
            dist.recv(arriving, before)
        else:
            dist.recv(arriving, before)
            dist.send(seen[-1], after)
        seen.append(arriving)
    return sum(seen)


def unmatched_last_send_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for step in range(size):
        arriving = torch.zeros(mine.shape)
        if step < size - 1:
            wait(batch(held, arriving, after, before))
            held, total = arriving, total + arriving
        elif size > 1:
            dist.send(held, after)
    return total


def unmatched_last_send_b(mine):
    _, size, after, before = place()
    if size == 1:
        return mine.clone()
    seen = [mine.contiguous()]
    for step in range(size):
        arriving = torch.zeros(mine.shape)
        ops = [dist.P2POp(dist.isend, seen[-1], after)]
        if step + 1 < size:
            ops.append(dist.P2POp(dist.irecv, arriving, before))
            seen.append(arriving)
        wait(dist.batch_isend_irecv(ops))
    return torch.stack(seen).sum(0)


def forgets_one_rank_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(max(1, size - 1)):
        held = exchanged(held, after, before)
        total = total + held if size > 1 else total
    return total


def forgets_one_rank_b(mine):
    _, size, after, before = place()
    held, total, hops = mine.contiguous(), mine.clone(), 0
    while True:
        arriving = torch.zeros(mine.shape)
        wait(batch(held, arriving, after, before))
        hops += 1
        if size > 1:
            total = total + arriving
        if hops >= size - 1:
            return total
        held = arriving


def works_under_gloo_only_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        wait([dist.isend(held, after), dist.irecv(arriving, before)])
        held, total = arriving, total + arriving
    return total


def works_under_gloo_only_b(mine):
    _, size, after, before = place()
    seen = [mine.contiguous()]
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        receiving = dist.irecv(arriving, before)
        dist.send(seen[-1], after)
        receiving.wait()
        seen.append(arriving)
    return sum(seen)


def send_before_receive_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        dist.send(held, after)
        dist.recv(arriving, before)
        held, total = arriving, total + arriving
    return total


def send_before_receive_b(mine):
    """The order of the listing."""
    _, size, after, before = place()
    held, total = mine.contiguous(), torch.zeros(mine.shape)
    for step in range(size):
        sending = dist.isend(held, after) if step < size - 1 else None
        total += held
        if sending is not None:
            sending.wait()
            held = torch.empty_like(held)
            dist.irecv(held, before).wait()
    return total


def receive_before_send_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        dist.recv(arriving, before)
        dist.send(held, after)
        held, total = arriving, total + arriving
    return total


def receive_before_send_b(mine):
    _, size, after, before = place()
    seen = [mine.contiguous()]
    for _ in range(size - 1):
        seen.append(torch.zeros(mine.shape))
        dist.irecv(seen[-1], before).wait()
        dist.isend(seen[-2], after).wait()
    return sum(seen)


def uses_a_collective_a(mine):
    total = mine.contiguous().clone()
    dist.all_reduce(total)
    return total


def uses_a_collective_b(mine):
    each = [torch.empty(mine.shape) for _ in range(dist.get_world_size())]
    dist.all_gather(each, mine.contiguous())
    return torch.stack(each).sum(0)


def relies_on_tags_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        new = torch.empty_like(held)
        ops = [dist.P2POp(dist.isend, held[row], after, tag=row) for row in (0, 1)]
        ops += [dist.P2POp(dist.irecv, new[row], before, tag=row) for row in (1, 0)]
        wait(dist.batch_isend_irecv(ops))
        held, total = new, total + new
    return total


def relies_on_tags_b(mine):
    _, size, after, before = place()
    first, second = mine[0].contiguous(), mine[1].contiguous()
    sums = [first.clone(), second.clone()]
    for _ in range(size - 1):
        rows = [torch.empty_like(first), torch.empty_like(second)]
        wait(
            dist.batch_isend_irecv(
                [
                    dist.P2POp(dist.irecv, rows[0], before, tag=7),
                    dist.P2POp(dist.irecv, rows[1], before, tag=8),
                    dist.P2POp(dist.isend, second, after, tag=8),
                    dist.P2POp(dist.isend, first, after, tag=7),
                ]
            )
        )
        first, second = rows
        sums = [sums[0] + first, sums[1] + second]
    return torch.stack(sums)


def takes_turns_a(mine):
    """Rank 0 receives first."""
    rank, size, after, before = place()
    seen = [mine.contiguous()]
    while len(seen) < size:
        arriving = torch.zeros(mine.shape)
        if rank == 0:
            dist.recv(arriving, before)
            dist.send(seen[-1], after)
        else:
            dist.send(seen[-1], after)
            dist.recv(arriving, before)
        seen.append(arriving)
    return torch.stack(seen).sum(0)


def takes_turns_b(mine):
    """Odd ranks receive first."""
    rank, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        arriving = torch.zeros(mine.shape)
        if rank % 2 == 0:
            dist.send(held, after)
        dist.recv(arriving, before)
        if rank % 2:
            dist.send(held, after)
        held, total = arriving, total + arriving
    return total


def wrong_direction_a(mine):
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        held = exchanged(held, before, after)
        total += held
    return total


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
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.contiguous().clone()
    for _ in range(size - 1):
        arriving = torch.empty_like(total)
        wait(batch(held, arriving, after, before))
        total += arriving
        held = total.clone()
    return total


def own_sent_again_a(mine):
    _, size, after, before = place()
    total = mine.clone()
    for _ in range(size - 1):
        total += exchanged(mine, after, before)
    return total


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
    return right_a(mine) - mine


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
