"""Backwards with the right gradients that send, keep or change what they should not."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_backward.pieces import (
    expanded,
    grouped_share,
    one_behind,
    over_heads,
    passed_on,
    place,
    rounded,
    share,
    travelling,
)


def gathers_everything_a(q, k, v, out, lse, dout):
    """K and V gathered, dK and dV summed on every rank."""
    rank, size = place()
    block = torch.stack([k, v])
    blocks = [torch.empty_like(block) for _ in range(size)]
    dist.all_gather(blocks, block)
    dq, *sums = share(q, *torch.cat(blocks, dim=-2), out, lse, dout)
    sums = torch.stack(sums)
    dist.all_reduce(sums)
    return rounded(q, (dq, *sums.chunk(size, dim=-2)[rank]))


def gathers_everything_b(q, k, v, out, lse, dout):
    """K and V go round; the sums of all blocks are kept, and scattered at the end."""
    _, size = place()
    held, sums, dq = [k.contiguous(), v.contiguous()], [], torch.zeros(q.shape)
    for step in range(size):
        here, *more = grouped_share(q, *held, out, lse, dout)
        dq += here
        sums.append(torch.stack(more))
        if step < size - 1:
            held = passed_on(*held)
    rank = dist.get_rank()
    by_owner = [sums[(rank - owner) % size] for owner in range(size)]
    own = torch.empty_like(by_owner[0])
    dist.reduce_scatter(own, by_owner)
    return rounded(q, (dq, *own))


def kv_sent_in_float32_a(q, k, v, out, lse, dout):
    return rounded(q, travelling(q, k.float(), v.float(), out, lse, dout))


def kv_sent_in_float32_b(q, k, v, out, lse, dout):
    wide = [x.to(torch.promote_types(x.dtype, torch.float32)) for x in (q, k, v)]
    dq, dk, dv = one_behind(*wide, out, lse, dout)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


def kv_heads_sent_expanded_a(q, k, v, out, lse, dout):
    wide = [x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v)]
    dq, *sums = travelling(q, *wide, out, lse, dout)
    return rounded(q, (dq, *(over_heads(x, k) for x in sums)))


def kv_heads_sent_expanded_b(q, k, v, out, lse, dout):
    """K and V travel unexpanded, and their gradients with a head for every query head."""
    _, size = place()
    block, dq, sums = torch.stack([k, v]), torch.zeros(q.shape), torch.zeros(2, *q.shape)
    for step in range(size):
        heads = [expanded(q, x) for x in block]
        here, *more = grouped_share(q, *heads, out, lse, dout)
        dq, sums = dq + here, sums + torch.stack(more)
        if step + 1 < size:
            (block,) = passed_on(block)
        if size > 1:
            (sums,) = passed_on(sums)
    return rounded(q, (dq, *(over_heads(x, k) for x in sums)))


def kv_goes_home_too_a(q, k, v, out, lse, dout):
    _, size = place()
    block, sums, dq = torch.stack([k, v]), torch.zeros(2, *k.shape), 0.0
    for _ in range(size):
        here, *more = share(q, *block, out, lse, dout)
        dq, sums = dq + here, sums + torch.stack(more)
        if size > 1:
            block, sums = passed_on(block, sums)
    return rounded(q, (dq, *sums))


def kv_goes_home_too_b(q, k, v, out, lse, dout):
    _, size = place()
    held = [k.contiguous(), v.contiguous(), torch.zeros(k.shape), torch.zeros(v.shape)]
    dq = torch.zeros(q.shape)
    steps = 0
    while True:
        here, dk, dv = grouped_share(q, *held[:2], out, lse, dout)
        dq += here
        held[2:] = [held[2] + dk, held[3] + dv]
        steps += 1
        held = [passed_on(x)[0] for x in held] if size > 1 else held
        if steps == size:
            return rounded(q, (dq, *held[2:]))


def straight_home_a(q, k, v, out, lse, dout):
    rank, size = place()
    block = torch.stack([k, v])
    dq, *own = share(q, *block, out, lse, dout)
    own = torch.stack(own)
    for step in range(1, size):
        (block,) = passed_on(block)
        here, *more = share(q, *block, out, lse, dout)
        dq, came = dq + here, torch.empty_like(own)
        ops = [
            dist.P2POp(dist.isend, torch.stack(more), group_peer=(rank - step) % size),
            dist.P2POp(dist.irecv, came, group_peer=(rank + step) % size),
        ]
        for handle in dist.batch_isend_irecv(ops):
            handle.wait()
        own += came
    return rounded(q, (dq, *own))


def straight_home_b(q, k, v, out, lse, dout):
    """All shares are kept, and sent at the end."""
    rank, size = place()
    held, shares, dq = [k.contiguous(), v.contiguous()], [], torch.zeros(q.shape)
    for step in range(size):
        here, *more = grouped_share(q, *held, out, lse, dout)
        dq += here
        shares.append(more)
        if step < size - 1:
            held = passed_on(*held)
    own, ops, came = shares[0], [], []
    for step, more in enumerate(shares[1:], 1):
        for x in more:
            came.append(torch.empty_like(x))
            ops.append(dist.P2POp(dist.irecv, came[-1], (rank + step) % size))
            ops.append(dist.P2POp(dist.isend, x, (rank - step) % size))
    for handle in dist.batch_isend_irecv(ops) if ops else []:
        handle.wait()
    dk, dv = own[0] + sum(came[::2]), own[1] + sum(came[1::2])
    return rounded(q, (dq, dk, dv))


def to_the_previous(*tensors):
    rank, size = place()
    new = [torch.empty_like(x) for x in tensors]
    ops = [dist.P2POp(dist.isend, x, (rank - 1) % size) for x in tensors]
    ops += [dist.P2POp(dist.irecv, x, (rank + 1) % size) for x in new]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    return new


def wrong_direction_a(q, k, v, out, lse, dout):
    _, size = place()
    block, sums, dq = torch.stack([k, v]), torch.zeros(2, *k.shape), 0.0
    for step in range(size):
        here, *more = share(q, *block, out, lse, dout)
        dq, sums = dq + here, sums + torch.stack(more)
        if step < size - 1:
            (block,) = to_the_previous(block)
        if size > 1:
            (sums,) = to_the_previous(sums)
    return rounded(q, (dq, *sums))


def wrong_direction_b(q, k, v, out, lse, dout):
    """The own share stays at home; the sums follow after the compute."""
    _, size = place()
    held = [k.contiguous(), v.contiguous()]
    dq, *own = grouped_share(q, *held, out, lse, dout)
    ready = [torch.zeros_like(x) for x in own]
    for step in range(1, size):
        held = to_the_previous(*held)
        ready = to_the_previous(*ready) if step > 1 else ready
        here, *more = grouped_share(q, *held, out, lse, dout)
        dq, ready = dq + here, [x + y for x, y in zip(ready, more, strict=True)]
    came = to_the_previous(*ready) if size > 1 else ready
    return rounded(q, (dq, *(x + y for x, y in zip(own, came, strict=True))))


def keeps_every_block_a(q, k, v, out, lse, dout):
    """K and V of all ranks, then one large product; the sums go round afterwards."""
    _, size = place()
    blocks = [torch.stack([k, v])]
    for _ in range(size - 1):
        blocks += passed_on(blocks[-1])
    dq, *sums = share(q, *torch.cat(blocks, dim=-2), out, lse, dout)
    sums = torch.stack(sums).chunk(size, dim=-2)
    travelling_sums = sums[0]
    for step in range(1, size + 1):
        (travelling_sums,) = passed_on(travelling_sums.contiguous()) if size > 1 else (sums[0],)
        if step < size:
            travelling_sums = travelling_sums + sums[step]
    return rounded(q, (dq, *travelling_sums))


def keeps_every_block_b(q, k, v, out, lse, dout):
    """Each block and each share is put aside, in case it is needed once more."""
    kept = []

    def hoarding(*args):
        found = grouped_share(*args)
        kept.append([x.clone() for x in (*args[1:3], *found)])
        return found

    return rounded(q, one_behind(q, k, v, out, lse, dout, share=hoarding))
