"""Two ways round a ring, each given what a hop does."""

from __future__ import annotations

import torch
import torch.distributed as dist


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


def running(mine, hop):
    """A running total; ``hop(held, after, before)`` gives what arrives."""
    _, size, after, before = place()
    held, total = mine.contiguous(), mine.clone()
    for _ in range(size - 1):
        held = hop(held, after, before)
        total = total + held
    return total


def collected(mine, hop):
    """All that was seen is kept, and added at the end; ``hop(seen, after, before)``."""
    _, size, after, before = place()
    seen = [mine.contiguous()]
    while len(seen) < size:
        seen.append(hop(seen, after, before))
    return torch.stack(seen).sum(0)
