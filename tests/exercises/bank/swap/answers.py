"""Swaps between neighbours, right and wrong."""

from __future__ import annotations

from functools import wraps

import torch
import torch.distributed as dist


def partner():
    rank, size = dist.get_rank(), dist.get_world_size()
    other = rank ^ 1
    return other if other < size else None


def between_partners(swap):
    """An answer of ``swap(mine, other)``; a rank without partner returns what it has."""

    @wraps(swap)
    def answer(mine):
        other = partner()
        return mine if other is None else swap(mine, other)

    return answer


def exchanged(sent, to, source):
    """What comes from `source` while `sent` goes out, as one batch."""
    arriving = torch.empty(sent.shape)
    ops = [
        dist.P2POp(dist.irecv, arriving, source),
        dist.P2POp(dist.isend, sent.contiguous(), to),
    ]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    return arriving


@between_partners
def right_a(mine, other):
    return exchanged(mine, other, other)


@between_partners
def right_b(mine, other):
    """Even ranks send first, odd ranks receive first."""
    sent, got = mine.contiguous(), torch.zeros(mine.shape)
    if dist.get_rank() < other:
        dist.send(sent, other)
        dist.recv(got, other)
    else:
        dist.recv(got, other)
        dist.send(sent, other)
    return got


@between_partners
def sends_gaps_a(mine, other):
    arriving = torch.empty(mine.shape)
    ops = [dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, arriving, other)]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    return arriving


@between_partners
def sends_gaps_b(mine, other):
    got = torch.zeros(mine.shape)
    if other % 2:
        dist.send(mine, other)
    dist.recv(got, other)
    if other % 2 == 0:
        dist.send(mine, other)
    return got


@between_partners
def receives_into_what_is_sent_a(mine, other):
    held = mine.clone(memory_format=torch.contiguous_format)
    ops = [dist.P2POp(dist.isend, held, other), dist.P2POp(dist.irecv, held, other)]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    return held


@between_partners
def receives_into_what_is_sent_b(mine, other):
    held = mine.contiguous().clone()
    works = [dist.isend(held, other), dist.irecv(held, other)]
    works[0].wait()
    works[1].wait()
    return held


@between_partners
def reads_before_wait_a(mine, other):
    sent, arriving = mine.contiguous(), torch.empty(mine.shape)
    ops = [dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, arriving, other)]
    handles = dist.batch_isend_irecv(ops)
    result = arriving.clone()
    for handle in handles:
        handle.wait()
    return result


@between_partners
def reads_before_wait_b(mine, other):
    sent, arriving = mine.contiguous(), torch.empty(mine.shape)
    ops = [dist.P2POp(dist.irecv, arriving, other), dist.P2POp(dist.isend, sent, other)]
    handles = dist.batch_isend_irecv(ops)
    result = arriving + 0
    [handle.wait() for handle in handles]
    return result


@between_partners
def handle_not_waited_for_a(mine, other):
    sent, arriving = mine.contiguous(), torch.empty(mine.shape)
    if dist.get_rank() < other:
        handle = dist.isend(sent, other)
        dist.recv(arriving, other)
        del handle
    else:
        dist.recv(arriving, other)
        dist.send(sent, other)
    return arriving


@between_partners
def handle_not_waited_for_b(mine, other):
    sent, arriving = mine.contiguous(), torch.empty(mine.shape)
    if dist.get_rank() % 2:
        dist.recv(arriving, other)
        dist.isend(sent, other)
    else:
        dist.send(sent, other)
        dist.irecv(arriving, other).wait()
    return arriving


def next_rank_for_partner_a(mine):
    rank, size = dist.get_rank(), dist.get_world_size()
    other = (rank + 1) % size
    return mine if size == 1 else exchanged(mine, other, other)


def next_rank_for_partner_b(mine):
    rank, size = dist.get_rank(), dist.get_world_size()
    if size == 1:
        return mine
    other, got = (rank - 1) % size, torch.empty(mine.shape)
    if rank % 2 == 0:
        dist.send(mine.contiguous(), other)
        dist.recv(got, other)
    else:
        dist.recv(got, other)
        dist.send(mine.contiguous(), other)
    return got


def moves_in_a_circle_a(mine):
    rank, size = dist.get_rank(), dist.get_world_size()
    return mine if size == 1 else exchanged(mine, (rank + 1) % size, (rank - 1) % size)


def moves_in_a_circle_b(mine):
    rank, size = dist.get_rank(), dist.get_world_size()
    if size == 1:
        return mine
    before = size - 1 if rank == 0 else rank - 1
    after = 0 if rank == size - 1 else rank + 1
    return exchanged(mine, before, after)


def odd_one_forgotten_a(mine):
    other = dist.get_rank() ^ 1
    return exchanged(mine, other, other)


def odd_one_forgotten_b(mine):
    """The last rank of an odd number swaps with itself."""
    rank = dist.get_rank()
    other = min(dist.get_world_size() - 1, rank + 1 if rank % 2 == 0 else rank - 1)
    return exchanged(mine, other, other)


@between_partners
def works_under_gloo_only_a(mine, other):
    sent, arriving = mine.contiguous(), torch.empty(mine.shape)
    handles = [dist.isend(sent, other), dist.irecv(arriving, other)]
    for handle in handles:
        handle.wait()
    return arriving


@between_partners
def works_under_gloo_only_b(mine, other):
    arriving = torch.empty(mine.shape)
    receiving = dist.irecv(arriving, other)
    dist.send(mine.contiguous(), other)
    receiving.wait()
    return arriving


@between_partners
def send_before_receive_a(mine, other):
    arriving = torch.empty(mine.shape)
    dist.send(mine.contiguous(), other)
    dist.recv(arriving, other)
    return arriving


@between_partners
def send_before_receive_b(mine, other):
    sent = mine.contiguous()
    dist.isend(sent, other).wait()
    arriving = torch.empty(mine.shape)
    dist.irecv(arriving, other).wait()
    return arriving


@between_partners
def receive_before_send_a(mine, other):
    arriving = torch.empty(mine.shape)
    dist.recv(arriving, other)
    dist.send(mine.contiguous(), other)
    return arriving


@between_partners
def receive_before_send_b(mine, other):
    arriving = torch.empty(mine.shape)
    dist.irecv(arriving, other).wait()
    sent = mine.contiguous()
    dist.isend(sent, other).wait()
    return arriving


def keeps_its_own_a(mine):
    right_a(mine)
    return mine


def keeps_its_own_b(mine):
    right_b(mine)
    return mine.contiguous().clone()
