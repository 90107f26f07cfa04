"""The prefill ring as it is often written down, and its variants.

Each program passes K and V around a ring as one would in attention, in another order of the
same steps; what it computes is a sum over all ranks, so that wrong data show.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class Ring:
    """What every variant has: neighbours, the blocks of a layer and the running sum."""

    def __init__(self, layer=0):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.after, self.before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        self.k = torch.full((4,), 10.0**layer * (self.rank + 1))
        self.v = -self.k
        self.total = torch.zeros(4)

    def compute(self):
        self.total += 2 * self.k + self.v

    def expected(self, layer=0):
        return 10.0**layer * sum(range(1, self.size + 1))

    def buffers(self):
        return torch.empty(4), torch.empty(4)

    def send(self):
        return [dist.isend(self.k, self.after), dist.isend(self.v, self.after)]

    def receive(self, k, v):
        return [dist.irecv(k, self.before), dist.irecv(v, self.before)]

    def batch(self, k, v):
        ops = [
            *(dist.P2POp(dist.isend, t, self.after) for t in (self.k, self.v)),
            *(dist.P2POp(dist.irecv, t, self.before) for t in (k, v)),
        ]
        return dist.batch_isend_irecv(ops)


def wait(works):
    for work in works:
        work.wait()


def listing():
    """Send, compute, wait for the sends, and only then receive; a send after the last step, too."""
    ring = Ring()
    for step in range(ring.size):
        sends = ring.send()
        ring.compute()
        wait(sends)
        if step < ring.size - 1:
            k, v = ring.buffers()
            wait(ring.receive(k, v))
            ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def receives_posted_first():
    """The receives are posted before the sends are waited for; the last send has no partner."""
    ring = Ring()
    for step in range(ring.size):
        sends = ring.send()
        more = step < ring.size - 1
        k, v = ring.buffers()
        receives = ring.receive(k, v) if more else []
        ring.compute()
        wait(sends + receives)
        ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def last_send_skipped():
    """As many sends as receives, unbatched, all posted before any is waited for."""
    ring = Ring()
    for step in range(ring.size):
        works = []
        if step < ring.size - 1:
            k, v = ring.buffers()
            works = ring.send() + ring.receive(k, v)
        ring.compute()
        wait(works)
        if works:
            ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def receives_before_sends():
    """As above, with the receives posted before the sends."""
    ring = Ring()
    for step in range(ring.size):
        works = []
        if step < ring.size - 1:
            k, v = ring.buffers()
            works = ring.receive(k, v) + ring.send()
        ring.compute()
        wait(works)
        if works:
            ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def sends_never_waited(layers=3):
    """The sends are kept and never waited for, the last one included, layer after layer."""
    kept, right = [], []
    for layer in range(layers):
        ring = Ring(layer)
        for step in range(ring.size):
            kept += ring.send()
            ring.compute()
            if step < ring.size - 1:
                k, v = ring.buffers()
                wait(ring.receive(k, v))
                ring.k, ring.v = k, v
        right.append(ring.total[0].item() == ring.expected(layer))
    return right


def last_send_unwaited():
    """Right but for the last send, which is neither matched nor waited for."""
    ring = Ring()
    for step in range(ring.size):
        k, v = ring.buffers()
        if step < ring.size - 1:
            works = ring.batch(k, v)
            ring.compute()
            wait(works)
            ring.k, ring.v = k, v
        else:
            ring.send()
            ring.compute()
    return ring.total[0].item() == ring.expected()


def batched():
    ring = Ring()
    for step in range(ring.size):
        works = []
        if step < ring.size - 1:
            k, v = ring.buffers()
            works = ring.batch(k, v)
        ring.compute()
        wait(works)
        if works:
            ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def batched_layers():
    return all(batched() for _ in range(3))


def batched_with_a_last_send():
    """In batches; in the last step only the sends are left, and nobody receives them."""
    ring = Ring()
    for step in range(ring.size):
        k, v = ring.buffers()
        works = ring.batch(k, v) if step < ring.size - 1 else ring.send()
        ring.compute()
        wait(works)
        ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def even_ranks_send_first():
    ring = Ring()
    for step in range(ring.size):
        ring.compute()
        if step < ring.size - 1:
            k, v = ring.buffers()
            if ring.rank % 2 == 0:
                dist.send(ring.k, ring.after), dist.send(ring.v, ring.after)
                dist.recv(k, ring.before), dist.recv(v, ring.before)
            else:
                dist.recv(k, ring.before), dist.recv(v, ring.before)
                dist.send(ring.k, ring.after), dist.send(ring.v, ring.after)
            ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def values_received_before_keys():
    """The receiver posts V before K: with one source and one tag they are swapped."""
    ring = Ring()
    for step in range(ring.size):
        works = []
        if step < ring.size - 1:
            k, v = ring.buffers()
            ops = [
                *(dist.P2POp(dist.isend, t, ring.after) for t in (ring.k, ring.v)),
                *(dist.P2POp(dist.irecv, t, ring.before) for t in (v, k)),
            ]
            works = dist.batch_isend_irecv(ops)
        ring.compute()
        wait(works)
        if works:
            ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()


def values_received_before_keys_with_tags():
    ring = Ring()
    for step in range(ring.size):
        works = []
        if step < ring.size - 1:
            k, v = ring.buffers()
            works = [
                dist.isend(ring.k, ring.after, tag=1),
                dist.isend(ring.v, ring.after, tag=2),
                dist.irecv(v, ring.before, tag=2),
                dist.irecv(k, ring.before, tag=1),
            ]
        ring.compute()
        wait(works)
        if works:
            ring.k, ring.v = k, v
    return ring.total[0].item() == ring.expected()
