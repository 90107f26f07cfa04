"""Programs of virtual ranks that are spread over processes, and those that cannot be."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from ringlab import ring_attention


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def neighbours():
    rank, size = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % size, (rank + 1) % size


def ring(layout, length, causal, backward):
    """A layer of attention; what it returns are shapes and numbers of the rank's own."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = layout.local_length(rank, size, length)
    q = meta(1, 8, own, 64, dtype=torch.bfloat16).requires_grad_(backward)
    k, v = (meta(1, 2, own, 64, dtype=torch.bfloat16) for _ in range(2))
    out = ring_attention(q, k, v, layout=layout, causal=causal, length=length)
    if backward:
        out.backward(out.detach())
    return rank, tuple(out.shape), torch.rand(1).item()


def everybody_to_everybody():
    """As many messages between the processes as there are pairs of ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    others = [other for other in range(size) if other != rank]
    ops = [dist.P2POp(dist.isend, meta(rank + 1), other) for other in others]
    ops += [dist.P2POp(dist.irecv, meta(other + 1), other) for other in others]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return len(ops)


def tagged():
    """Under gloo's rules the later tag may be received first."""
    before, after = neighbours()
    works = [dist.isend(meta(tag + 1), after, tag=tag) for tag in (1, 2)]
    for tag in (2, 1):
        dist.recv(meta(tag + 1), before, tag=tag)
    for work in works:
        work.wait()
    return os.getpid()


def collective():
    total = torch.ones(1)
    dist.all_reduce(total)
    return total.item()


def with_data():
    before, after = neighbours()
    came = torch.zeros(1)
    ops = [dist.P2POp(dist.isend, torch.ones(1) * dist.get_rank(), after),
           dist.P2POp(dist.irecv, came, before)]  # fmt: skip
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return came.item()


def from_anybody():
    before, after = neighbours()
    work = dist.isend(meta(1), after)
    sender = dist.recv(meta(1))
    work.wait()
    return sender == before


def asking():
    before, after = neighbours()
    work = dist.irecv(meta(1), before)
    sent = dist.isend(meta(1), after)
    while not work.is_completed():
        pass
    work.wait()
    sent.wait()
    return True


def all_receive():
    dist.recv(meta(1), neighbours()[0])


def unequal():
    before, after = neighbours()
    ops = [dist.P2POp(dist.isend, meta(2), after), dist.P2POp(dist.irecv, meta(3), before)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()


def raising():
    if dist.get_rank() == 3:
        raise KeyError("what a program raises")


def ending(caller):
    """End the process, unless it is the caller's."""
    if dist.get_rank() == 3 and os.getpid() != caller:
        os._exit(3)
    return os.getpid() == caller
