"""Right backwards, written differently."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.ring_backward.pieces import (
    grouped_share,
    one_behind,
    place,
    rounded,
    share,
    travelling,
)


def right_a(q, k, v, out, lse, dout):
    return rounded(q, travelling(q, k, v, out, lse, dout))


def right_b(q, k, v, out, lse, dout):
    return list(rounded(q, one_behind(q, k, v, out, lse, dout)))


def right_c(q, k, v, out, lse, dout):
    """A batch for each pair of ranks and tensor, dK and dV apart, float64 inside."""
    rank, size = place()
    wide = [x.double() for x in (out, lse, dout)]
    keys, values, dq = k.clone(), v.clone(), torch.zeros_like(q, dtype=torch.float64)
    dk, dv = torch.zeros(k.shape), torch.zeros(v.shape)

    def onwards(x):
        new = torch.empty_like(x)
        receive = dist.P2POp(dist.irecv, new, (rank - 1) % size)
        send = dist.P2POp(dist.isend, x, (rank + 1) % size)
        for handle in dist.batch_isend_irecv([receive, send]):
            handle.wait()
        return new

    for left in reversed(range(size)):
        new_dq, new_dk, new_dv = share(q, keys, values, *wide)
        dq += new_dq
        dk, dv = dk + new_dk.float(), dv + new_dv.float()
        if left:
            keys, values = onwards(keys), onwards(values)
        if size > 1:
            dk, dv = onwards(dk), onwards(dv)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)


def right_d(q, k, v, out, lse, dout):
    return rounded(q, travelling(q, k, v, out, lse, dout, share=grouped_share))
