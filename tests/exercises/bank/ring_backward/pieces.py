"""Pieces of backwards, in two ways of writing them.

`travelling` lets the sums of a block go with it, in W hops, after the compute of each step.
`one_behind` starts the hop of a block before the compute and that of its sums one step later, so
that both are under way meanwhile; the own share stays at home.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_forward.pieces import place


def passed_on(*tensors):
    """Send tensors to the next rank in one batch, and return those of the rank before."""
    rank, size = place()
    new = [torch.empty_like(x) for x in tensors]
    ops = [dist.P2POp(dist.isend, x, group_peer=(rank + 1) % size) for x in tensors]
    ops += [dist.P2POp(dist.irecv, x, group_peer=(rank - 1) % size) for x in new]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    return new


def started(sends, receives):
    """Start a hop to the next rank and from the one before."""
    rank, size = place()
    ops = [dist.P2POp(dist.isend, x, (rank + 1) % size) for x in sends]
    ops += [dist.P2POp(dist.irecv, x, (rank + size - 1) % size) for x in receives]
    return dist.batch_isend_irecv(ops) if ops else []


def expanded(q, x):
    return x.float().repeat_interleave(q.shape[1] // x.shape[1], dim=1)


def over_heads(x, like):
    """The sum over the query heads that share a KV head."""
    return x.unflatten(1, (like.shape[1], -1)).sum(2)


def share(q, k, v, out, lse, dout):
    """What the queries give for one block: dq, and dk and dv of its KV heads."""
    keys, values = (expanded(q, x).to(lse.dtype) for x in (k, v))
    q, dout = q.to(lse.dtype), dout.to(lse.dtype)
    scale = q.shape[-1] ** -0.5
    weights = (q @ keys.mT * scale - lse[..., None]).exp()
    delta = (dout * out).sum(-1, keepdim=True)
    slopes = weights * (dout @ values.mT - delta) * scale
    return slopes @ keys, over_heads(slopes.mT @ q, k), over_heads(weights.mT @ dout, v)


def grouped_share(q, k, v, out, lse, dout, scale=None):
    """The same with an axis for the query heads of a KV head, which products add up."""
    heads = k.shape[1]
    q, dout, out = (x.float().unflatten(1, (heads, -1)) for x in (q, dout, out))
    lse, scale = lse.unflatten(1, (heads, -1)), scale or q.shape[-1] ** -0.5
    k, v = k.float(), v.float()
    weights = torch.exp(scale * torch.einsum("bhgqd,bhkd->bhgqk", q, k) - lse.unsqueeze(-1))
    products = torch.einsum("bhgqd,bhkd->bhgqk", dout, v)
    slopes = weights * (products - torch.einsum("bhgqd,bhgqd->bhgq", dout, out)[..., None])
    dq = scale * torch.einsum("bhgqk,bhkd->bhgqd", slopes, k)
    dk = scale * torch.einsum("bhgqk,bhgqd->bhkd", slopes, q)
    return dq.flatten(1, 2), dk, torch.einsum("bhgqk,bhgqd->bhkd", weights, dout)


def travelling(q, k, v, *saved, share=share, home=None):
    """Gradients in float32; `home` is how many hops the sums make, all W of them by default."""
    _, size = place()
    hops = (size if size > 1 else 0) if home is None else home
    block, dq = torch.stack([k, v]), 0.0
    sums = torch.zeros(block.shape, dtype=torch.float32)
    for step in range(size):
        here, *more = share(q, *block, *saved)
        dq = dq + here
        sums = sums + torch.stack(more)
        if step < size - 1:
            (block,) = passed_on(block)
        if step < hops:
            (sums,) = passed_on(sums)
    return dq, *sums


def one_behind(q, k, v, *saved, share=grouped_share, home=True):
    """Gradients in float32; without `home` the sums make no last hop."""
    _, size = place()
    held, ready, own = [k.contiguous(), v.contiguous()], [], None
    dq = torch.zeros(q.shape)
    for step in range(size):
        coming = [torch.empty_like(x) for x in held] if step < size - 1 else []
        sums = [torch.empty_like(x) for x in ready]
        handles = started([*(held if coming else []), *ready], [*coming, *sums])
        here, *more = share(q, *held, *saved)
        dq += here
        for handle in handles:
            handle.wait()
        if step == 0:
            own = more
        else:
            ready = [x + y for x, y in zip(sums, more, strict=True)] if sums else more
        held = coming or held
    if ready and home:
        came = [torch.empty_like(x) for x in ready]
        for handle in started(ready, came):
            handle.wait()
        own = [x + y for x, y in zip(own, came, strict=True)]
    return dq, *own


def rounded(q, grads):
    return tuple(x.to(q.dtype) for x in grads)
