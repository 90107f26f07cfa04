"""Rings that hang, leave something behind, or touch what is under way."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_of_sums.pieces import batch, collected, place, running, wait
from tests.exercises.bank.swap.answers import exchanged


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
    def hop(held, after, before):
        wait(batch(held, held, after, before))
        return held

    return running(mine.clone(memory_format=torch.contiguous_format), hop)


def receives_into_what_is_sent_b(mine):
    _, size, after, before = place()
    held, parts = mine.contiguous().clone(), [mine]
    for _ in range(size - 1):
        wait([dist.isend(held, after), dist.irecv(held, before)])
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
    def hop(seen, after, before):
        arriving = torch.zeros(mine.shape)
        handles = batch(seen[-1], arriving, after, before)
        copied = arriving.clone()
        wait(handles)
        return copied

    return collected(mine, hop)


def handle_not_waited_for_a(mine):
    def hop(held, after, before):
        arriving = torch.zeros(mine.shape)
        if dist.get_rank() == 0:
            dist.recv(arriving, before)
            dist.isend(held, after)
        else:
            dist.send(held, after)
            dist.recv(arriving, before)
        return arriving

    return running(mine, hop)


def handle_not_waited_for_b(mine):
    handles = []

    def hop(seen, after, before):
        arriving = torch.zeros(mine.shape)
        if dist.get_rank() == 0:
            handles.append(dist.isend(seen[-1], after))
            dist.recv(arriving, before)
        else:
            dist.recv(arriving, before)
            dist.send(seen[-1], after)
        return arriving

    return collected(mine, hop)


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
    def hop(held, after, before):
        arriving = torch.zeros(mine.shape)
        wait([dist.isend(held, after), dist.irecv(arriving, before)])
        return arriving

    return running(mine, hop)


def works_under_gloo_only_b(mine):
    def hop(seen, after, before):
        arriving = torch.zeros(mine.shape)
        receiving = dist.irecv(arriving, before)
        dist.send(seen[-1], after)
        receiving.wait()
        return arriving

    return collected(mine, hop)


def send_before_receive_a(mine):
    def hop(held, after, before):
        arriving = torch.zeros(mine.shape)
        dist.send(held, after)
        dist.recv(arriving, before)
        return arriving

    return running(mine, hop)


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
    def hop(held, after, before):
        arriving = torch.zeros(mine.shape)
        dist.recv(arriving, before)
        dist.send(held, after)
        return arriving

    return running(mine, hop)


def receive_before_send_b(mine):
    def hop(seen, after, before):
        arriving = torch.zeros(mine.shape)
        dist.irecv(arriving, before).wait()
        dist.isend(seen[-1], after).wait()
        return arriving

    return collected(mine, hop)
