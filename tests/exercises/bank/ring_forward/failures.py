"""Rings that hang, crash or touch what is under way."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_forward.pieces import merge, merged, online, partial, place


def unmatched_last_send_a(q, k, v):
    rank, size = place()
    held, out = torch.stack([k, v]), None
    for step in range(size):
        arriving = torch.empty_like(held)
        ops = [dist.P2POp(dist.isend, held, (rank + 1) % size)] if size > 1 else []
        if step < size - 1:
            ops.append(dist.P2POp(dist.irecv, arriving, (rank - 1) % size))
        handles = dist.batch_isend_irecv(ops) if ops else []
        part = partial(q, *held)
        out = part if out is None else merge(*out, *part)
        for handle in handles:
            handle.wait()
        held = arriving
    return out[0].to(q.dtype)


def unmatched_last_send_b(q, k, v):
    """The last send is not waited for either."""
    rank, size = place()

    def blocks(held):
        for step in range(size):
            yield held
            last = step == size - 1
            new = torch.empty_like(held)
            ops = [] if last else [dist.P2POp(dist.irecv, new, (rank - 1) % size)]
            ops += [dist.P2POp(dist.isend, held, (rank + 1) % size)] if size > 1 else []
            handles = dist.batch_isend_irecv(ops) if ops else []
            if not last:
                for handle in handles:
                    handle.wait()
                held = new

    return online(q, list(blocks(torch.stack([k, v]))))


def send_before_receive_a(q, k, v):
    rank, size = place()
    held, out = torch.stack([k, v]), None
    for step in range(size):
        part = partial(q, *held)
        out = part if out is None else merge(*out, *part)
        if step < size - 1:
            arriving = torch.empty_like(held)
            dist.send(held, (rank + 1) % size)
            dist.recv(arriving, (rank - 1) % size)
            held = arriving
    return out[0].to(q.dtype)


def send_before_receive_b(q, k, v):
    rank, size = place()

    def blocks(keys, values):
        yield keys, values
        for _ in range(size - 1):
            sends = [dist.isend(x.contiguous(), (rank + 1) % size) for x in (keys, values)]
            for handle in sends:
                handle.wait()
            keys, values = torch.empty_like(keys), torch.empty_like(values)
            for x in (keys, values):
                dist.irecv(x, (rank - 1) % size).wait()
            yield keys, values

    return online(q, blocks(k, v))


def receives_into_what_is_sent_a(q, k, v):
    rank, size = place()
    held, out = torch.stack([k, v]), None
    for step in range(size):
        part = partial(q, *held)
        out = part if out is None else merge(*out, *part)
        if step < size - 1:
            ops = [
                dist.P2POp(dist.isend, held, (rank + 1) % size),
                dist.P2POp(dist.irecv, held, (rank - 1) % size),
            ]
            for handle in dist.batch_isend_irecv(ops):
                handle.wait()
    return out[0].to(q.dtype)


def receives_into_what_is_sent_b(q, k, v):
    rank, size = place()

    def blocks(keys, values):
        yield keys, values
        for _ in range(size - 1):
            ops = []
            for x in (keys, values):
                ops.append(dist.P2POp(dist.irecv, x, group_peer=(rank - 1) % size))
                ops.append(dist.P2POp(dist.isend, x, group_peer=(rank + 1) % size))
            for handle in dist.batch_isend_irecv(ops):
                handle.wait()
            yield keys, values

    return online(q, blocks(k.clone(), v.clone()))


def reads_before_wait_a(q, k, v):
    rank, size = place()
    held, out = torch.stack([k, v]), None
    for step in range(size):
        handles = []
        if step < size - 1:
            arriving = torch.empty_like(held)
            ops = [
                dist.P2POp(dist.isend, held, (rank + 1) % size),
                dist.P2POp(dist.irecv, arriving, (rank - 1) % size),
            ]
            handles = dist.batch_isend_irecv(ops)
            held = arriving
        part = partial(q, *held)
        out = part if out is None else merge(*out, *part)
        for handle in handles:
            handle.wait()
    return out[0].to(q.dtype)


def reads_before_wait_b(q, k, v):
    rank, size = place()
    pending = []

    def blocks(keys, values):
        yield keys, values
        for _ in range(size - 1):
            new = [torch.empty_like(keys), torch.empty_like(values)]
            ops = [dist.P2POp(dist.irecv, x, (rank - 1) % size) for x in new]
            ops += [dist.P2POp(dist.isend, x, (rank + 1) % size) for x in (keys, values)]
            pending.extend(dist.batch_isend_irecv(ops))
            keys, values = new
            yield keys, values

    out = online(q, blocks(k, v))
    for handle in pending:
        handle.wait()
    return out


def handle_not_waited_for_a(q, k, v):
    rank, size = place()
    held, blocks = torch.stack([k, v]), []
    for step in range(size):
        blocks.append(held)
        if step < size - 1:
            arriving = torch.empty_like(held)
            ops = [
                dist.P2POp(dist.isend, held, (rank + 1) % size),
                dist.P2POp(dist.irecv, arriving, (rank - 1) % size),
            ]
            dist.batch_isend_irecv(ops)[1].wait()
            held = arriving
    return merged(q, blocks)


def handle_not_waited_for_b(q, k, v):
    rank, size = place()

    def blocks(keys, values):
        yield keys, values
        for _ in range(size - 1):
            new = [torch.empty_like(keys), torch.empty_like(values)]
            sends = [dist.P2POp(dist.isend, x, (rank + 1) % size) for x in (keys, values)]
            receives = [dist.P2POp(dist.irecv, x, (rank - 1) % size) for x in new]
            for handle in dist.batch_isend_irecv(sends + receives)[2:]:
                handle.wait()
            keys, values = new
            yield keys, values

    return online(q, list(blocks(k, v)))


def forgets_one_rank_a(q, k, v):
    rank, size = place()
    held = torch.stack([k, v])
    out = partial(q, *held)
    for step in range(max(1, size - 1)):
        arriving = torch.empty_like(held)
        ops = [
            dist.P2POp(dist.isend, held, (rank + 1) % size),
            dist.P2POp(dist.irecv, arriving, (rank - 1) % size),
        ]
        for handle in dist.batch_isend_irecv(ops):
            handle.wait()
        held = arriving
        if step < size - 1:
            out = merge(*out, *partial(q, *held))
    return out[0].to(q.dtype)


def forgets_one_rank_b(q, k, v):
    rank, size = place()
    held, out = torch.stack([k, v]), None
    for step in range(size - 1):
        arriving = torch.empty_like(held)
        ops = [
            dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size),
            dist.P2POp(dist.isend, held, group_peer=(rank + 1) % size),
        ]
        handles = dist.batch_isend_irecv(ops)
        part = partial(q, *held)
        out = part if step == 0 else merge(*out, *part)
        for handle in handles:
            handle.wait()
        held = arriving
    return merge(*out, *partial(q, *held))[0].to(q.dtype)
