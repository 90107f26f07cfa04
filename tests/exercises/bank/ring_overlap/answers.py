"""Rings that compute while their hops are under way, and rings that do not."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_forward.failures import (
    reads_before_wait_a,  # noqa: F401
    reads_before_wait_b,  # noqa: F401
    send_before_receive_a,  # noqa: F401
    send_before_receive_b,  # noqa: F401
)
from tests.exercises.bank.ring_forward.pieces import (
    merge,
    merged,
    online,
    packed_ring,
    partial,
    place,
    repeated,
    ring_of_pairs,
    scores_of,
)
from tests.exercises.bank.ring_forward.traffic import (
    gathers_everything_a,  # noqa: F401
    gathers_everything_b,  # noqa: F401
)


def started(blocks):
    """A hop for some tensors: the batch's handles, and where the next ones arrive."""
    rank, size = place()
    arriving = [torch.empty_like(block) for block in blocks]
    ops = [dist.P2POp(dist.isend, block, (rank + 1) % size) for block in blocks]
    ops += [dist.P2POp(dist.irecv, block, (rank - 1) % size) for block in arriving]
    return dist.batch_isend_irecv(ops), arriving


def wait(handles):
    for handle in handles:
        handle.wait()


def right_a(q, k, v):
    return merged(q, packed_ring(k, v))


def right_b(q, k, v):
    """The last step stands after the loop."""
    _, size = place()
    held, state = [k.contiguous(), v.contiguous()], None
    for _ in range(size - 1):
        handles, arriving = started(held)
        part = partial(q, *held)
        state = part if state is None else merge(*state, *part)
        wait(handles)
        held = arriving
    part = partial(q, *held)
    return (part if state is None else merge(*state, *part))[0].to(q.dtype)


def computes_first_a(q, k, v):
    return merged(q, ring_of_pairs(k, v))


def computes_first_b(q, k, v):
    _, size = place()
    held = [torch.stack([k, v])]
    out, lse = partial(q, *held[0])
    for _ in range(size - 1):
        handles, held = started(held)
        wait(handles)
        out, lse = merge(out, lse, *partial(q, *held[0]))
    return out.to(q.dtype)


def waits_first_a(q, k, v):
    _, size = place()
    held, state = [torch.stack([k, v])], None
    for step in range(size):
        following = held
        if step < size - 1:
            handles, following = started(held)
            wait(handles)
        part = partial(q, *held[0])
        state = part if state is None else merge(*state, *part)
        held = following
    return state[0].to(q.dtype)


def waits_first_b(q, k, v):
    _, size = place()

    def blocks(pair):
        for step in range(size):
            if step == size - 1:
                yield pair
                return
            handles, following = started(pair)
            wait(handles)
            yield pair
            pair = following

    return online(q, blocks([k, v]))


def some_hops_exposed_a(q, k, v):
    """The first hop is waited for at once."""
    _, size = place()
    held, state = [torch.stack([k, v])], None
    for step in range(size):
        handles, following = ([], held) if step == size - 1 else started(held)
        if step == 0:
            wait(handles)
        part = partial(q, *held[0])
        state = part if state is None else merge(*state, *part)
        if step > 0:
            wait(handles)
        held = following
    return state[0].to(q.dtype)


def some_hops_exposed_b(q, k, v):
    """Every other hop is."""
    _, size = place()
    pair, parts = [k, v], []
    for step in range(size - 1):
        if step % 2 == 0:
            parts.append(partial(q, *pair))
        handles, following = started(pair)
        if step % 2:
            parts.append(partial(q, *pair))
        wait(handles)
        pair = following
    parts.append(partial(q, *pair))
    outs, lses = (torch.stack(part) for part in zip(*parts, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0).to(q.dtype)


def half_of_the_compute_a(q, k, v):
    """Scores before the hop is started."""
    _, size = place()
    held, state = [torch.stack([k, v])], None
    for step in range(size):
        scores = scores_of(q, held[0][0])
        handles, following = ([], held) if step == size - 1 else started(held)
        part = scores.softmax(-1) @ repeated(q, held[0][1]), scores.logsumexp(-1)
        state = part if state is None else merge(*state, *part)
        wait(handles)
        held = following
    return state[0].to(q.dtype)


def half_of_the_compute_b(q, k, v):
    """The values after the wait."""
    _, size = place()
    pair, state = [k, v], None
    for step in range(size):
        handles, following = started(pair) if step < size - 1 else ([], pair)
        scores = scores_of(q, pair[0])
        wait(handles)
        part = scores.softmax(-1) @ repeated(q, pair[1]), scores.logsumexp(-1)
        state = part if state is None else merge(*state, *part)
        pair = following
    return state[0].to(q.dtype)


def receives_alone_first_a(q, k, v):
    rank, size = place()
    held, state = torch.stack([k, v]), None
    for step in range(size):
        last = step == size - 1
        arriving = torch.empty_like(held)
        receiving = None if last else dist.irecv(arriving, (rank - 1) % size)
        sending = None if last else dist.isend(held, (rank + 1) % size)
        part = partial(q, *held)
        state = part if state is None else merge(*state, *part)
        if not last:
            receiving.wait()
            sending.wait()
            held = arriving
    return state[0].to(q.dtype)


def receives_alone_first_b(q, k, v):
    """The receive before the compute, the send after it."""
    rank, size = place()

    def blocks(held):
        for step in range(size):
            if step < size - 1:
                arriving = torch.empty_like(held)
                receiving = dist.irecv(arriving, (rank - 1) % size)
            yield held
            if step < size - 1:
                dist.isend(held, (rank + 1) % size).wait()
                receiving.wait()
                held = arriving

    return online(q, blocks(torch.stack([k, v])))
