"""Backwards that hang, crash or touch what is under way."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_backward.pieces import (
    grouped_share,
    one_behind,
    passed_on,
    place,
    rounded,
    share,
    started,
)


def wait(handles):
    for handle in handles:
        handle.wait()


def adds_to_what_is_sent_a(q, k, v, out, lse, dout):
    """A block and its sums set out together, before the compute."""
    _, size = place()
    block, sums, dq = torch.stack([k, v]), torch.zeros(2, *k.shape), 0.0
    for step in range(size):
        coming = [torch.empty_like(block)] if step < size - 1 else []
        new = [torch.empty_like(sums)] if size > 1 else []
        handles = started([block][: len(coming)] + [sums][: len(new)], coming + new)
        here, *more = share(q, *block, out, lse, dout)
        dq = dq + here
        sums += torch.stack(more)
        wait(handles)
        block, sums = (coming or [block])[0], (new or [sums])[0]
    return rounded(q, (dq, *sums))


def adds_to_what_is_sent_b(q, k, v, out, lse, dout):
    """The sums alone are under way while they grow."""
    _, size = place()
    held, dq = [k.contiguous(), v.contiguous()], torch.zeros(q.shape)
    dk, dv = torch.zeros(k.shape), torch.zeros(v.shape)
    for step in range(size):
        here, new_dk, new_dv = grouped_share(q, *held, out, lse, dout)
        came = [torch.empty_like(dk), torch.empty_like(dv)]
        handles = started([dk, dv], came) if size > 1 else []
        dq.add_(here)
        dk.add_(new_dk)
        dv.add_(new_dv)
        wait(handles)
        if handles:
            dk, dv = came
        if step < size - 1:
            held = passed_on(*held)
    return rounded(q, (dq, dk, dv))


def send_before_receive_a(q, k, v, out, lse, dout):
    rank, size = place()
    block, sums, dq = torch.stack([k, v]), torch.zeros(2, *k.shape), 0.0

    def onwards(x):
        new = torch.empty_like(x)
        dist.send(x, (rank + 1) % size)
        dist.recv(new, (rank - 1) % size)
        return new

    for step in range(size):
        here, *more = share(q, *block, out, lse, dout)
        dq, sums = dq + here, sums + torch.stack(more)
        block = onwards(block) if step < size - 1 else block
        sums = onwards(sums) if size > 1 else sums
    return rounded(q, (dq, *sums))


def send_before_receive_b(q, k, v, out, lse, dout):
    """A right round of K and V; then the sums are sent home, one after the other."""
    rank, size = place()
    held, dq, ready = [k.contiguous(), v.contiguous()], torch.zeros(q.shape), None
    for step in range(size):
        here, *more = grouped_share(q, *held, out, lse, dout)
        dq += here
        ready = more if ready is None else [x + y for x, y in zip(ready, more, strict=True)]
        if step < size - 1:
            held = passed_on(*held)
        if size > 1:
            handles = [dist.isend(x, (rank + 1) % size) for x in ready]
            wait(handles)
            ready = [torch.empty_like(x) for x in ready]
            wait([dist.irecv(x, (rank - 1) % size) for x in ready])
    return rounded(q, (dq, *ready))


def reads_before_wait_a(q, k, v, out, lse, dout):
    _, size = place()
    block, sums, dq = torch.stack([k, v]), torch.zeros(2, *k.shape), 0.0
    for step in range(size):
        new = torch.empty_like(sums)
        handles = []
        here, *more = share(q, *block, out, lse, dout)
        dq, sums = dq + here, sums + torch.stack(more)
        if size > 1:
            handles = started([sums], [new])
            sums = new + 0.0
        wait(handles)
        if step < size - 1:
            (block,) = passed_on(block)
    return rounded(q, (dq, *sums))


def reads_before_wait_b(q, k, v, out, lse, dout):
    """The next block is computed with as soon as it was asked for."""
    _, size = place()
    held, pending, dq, ready = [k.contiguous(), v.contiguous()], [], torch.zeros(q.shape), None
    for step in range(size):
        here, *more = grouped_share(q, *held, out, lse, dout)
        dq += here
        ready = more if ready is None else [x + y for x, y in zip(ready, more, strict=True)]
        if step < size - 1:
            coming = [torch.empty_like(x) for x in held]
            pending += started(held, coming)
            held = coming
        if size > 1:
            ready = passed_on(*ready)
    wait(pending)
    return rounded(q, (dq, *ready))


def forgets_one_rank_a(q, k, v, out, lse, dout):
    """The last hop is made by one rank alone, too."""
    _, size = place()
    block, sums, dq = torch.stack([k, v]), torch.zeros(2, *k.shape), 0.0
    for step in range(size):
        here, *more = share(q, *block, out, lse, dout)
        dq, sums = dq + here, sums + torch.stack(more)
        if step < size - 1:
            (block,) = passed_on(block)
        (sums,) = passed_on(sums)
    return rounded(q, (dq, *sums))


def forgets_one_rank_b(q, k, v, out, lse, dout):
    """Nothing has been added up when one rank comes to the hop home."""
    if dist.get_world_size() > 1:
        return rounded(q, one_behind(q, k, v, out, lse, dout))
    dq, *own = grouped_share(q, k, v, out, lse, dout)
    came = passed_on(*own)
    return rounded(q, (dq, *(x + y for x, y in zip(own, came, strict=True))))
