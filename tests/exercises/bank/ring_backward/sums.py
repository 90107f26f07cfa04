"""Backwards that add up the shares of the wrong blocks, or on the wrong rank."""

from __future__ import annotations

import torch

from tests.exercises.bank.ring_backward.pieces import (
    grouped_share,
    one_behind,
    passed_on,
    place,
    rounded,
    share,
    travelling,
)


def last_hop_missing_a(q, k, v, *saved):
    _, size = place()
    return rounded(q, travelling(q, k, v, *saved, home=size - 1))


def last_hop_missing_b(q, k, v, *saved):
    """The sums go on before they are added to, so never after the last step."""
    _, size = place()
    held, ready, dq = [k.contiguous(), v.contiguous()], None, torch.zeros(q.shape)
    for step in range(size):
        here, *more = grouped_share(q, *held, *saved)
        dq += here
        came = passed_on(*ready) if step else [torch.zeros_like(x) for x in more]
        ready = [x + y for x, y in zip(came, more, strict=True)]
        held = passed_on(*held) if step < size - 1 else held
    return rounded(q, (dq, *ready))


def kept_where_computed_a(q, k, v, *saved):
    return rounded(q, travelling(q, k, v, *saved, home=0))


def kept_where_computed_b(q, k, v, *saved):
    _, size = place()
    held, totals = [k.contiguous(), v.contiguous()], []
    for step in range(size):
        totals.append(grouped_share(q, *held, *saved))
        held = passed_on(*held) if step < size - 1 else held
    return rounded(q, [sum(parts) for parts in zip(*totals, strict=True)])


def own_share_alone_a(q, k, v, *saved):
    return rounded(q, one_behind(q, k, v, *saved, home=False))


def own_share_alone_b(q, k, v, *saved):
    """As autograd does it: what came by a message has no gradient."""
    _, size = place()
    block, dq, own = torch.stack([k, v]), 0.0, None
    for step in range(size):
        here, *more = share(q, *block, *saved)
        dq = dq + here
        own = own or more
        if step < size - 1:
            (block,) = passed_on(block)
    return rounded(q, (dq, *own))


def own_share_missing_a(q, k, v, *saved):
    """The sums begin with the first foreign block."""
    _, size = place()
    block, dq = torch.stack([k, v]), 0.0
    sums = torch.zeros(block.shape)
    for step in range(size):
        here, *more = share(q, *block, *saved)
        dq = dq + here
        if step or size == 1:
            sums += torch.stack(more)
        if step < size - 1:
            (block,) = passed_on(block)
        if size > 1:
            (sums,) = passed_on(sums)
    return rounded(q, (dq, *sums))


def own_share_missing_b(q, k, v, *saved):
    """What comes home takes the place of what is there."""
    own = []

    def watched(*args):
        found = grouped_share(*args)
        own.append(found[1:])
        return found

    dq, dk, dv = one_behind(q, k, v, *saved, share=watched)
    _, size = place()
    return rounded(q, (dq, dk - own[0][0], dv - own[0][1]) if size > 1 else (dq, dk, dv))


def stale_kv_a(q, k, v, *saved):
    """The sums travel right, and every step computes with the own block."""
    return rounded(
        q, travelling(q, k, v, *saved, share=lambda q, _k, _v, *rest: share(q, k, v, *rest))
    )


def stale_kv_b(q, k, v, *saved):
    """Each hop sends the own block again."""
    _, size = place()
    own = [k.contiguous(), v.contiguous()]
    held, dq, ready = own, torch.zeros(q.shape), None
    for step in range(size):
        here, *more = grouped_share(q, *held, *saved)
        dq += here
        ready = more if ready is None else [x + y for x, y in zip(ready, more, strict=True)]
        if step < size - 1:
            held = passed_on(*own)
        if size > 1:
            ready = passed_on(*ready)
    return rounded(q, (dq, *ready))


def dq_of_the_last_block_a(q, k, v, *saved):
    _, size = place()
    block, sums = torch.stack([k, v]), torch.zeros(2, *k.shape)
    for step in range(size):
        dq, *more = share(q, *block, *saved)
        sums = sums + torch.stack(more)
        if step < size - 1:
            (block,) = passed_on(block)
        if size > 1:
            (sums,) = passed_on(sums)
    return rounded(q, (dq, *sums))


def dq_of_the_last_block_b(q, k, v, *saved):
    found = []

    def remembered(*args):
        found.append(grouped_share(*args))
        return found[-1]

    _, dk, dv = one_behind(q, k, v, *saved, share=remembered)
    return rounded(q, (found[-1][0], dk, dv))
