"""Attention in float64 by its definition, for judging: shares no code with the library."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Exact(NamedTuple):
    """Attention and its gradients in float64.

    Attributes
    ----------
    out : Tensor
        [B, Hq, Lq, D].
    lse : Tensor
        [B, Hq, Lq].
    dq, dk, dv : Tensor
        In the shapes of q, k and v; zero without an upstream gradient.
    """

    out: Tensor
    lse: Tensor
    dq: Tensor
    dk: Tensor
    dv: Tensor


def exact_attention(
    q: Tensor, k: Tensor, v: Tensor, *, allowed: Tensor | None = None, dout: Tensor | None = None
) -> Exact:
    """Attention over all keys, or over those that are allowed.

    Parameters
    ----------
    q : Tensor
        [B, Hq, Lq, D], any floating dtype.
    k, v : Tensor
        [B, Hkv, Lk, D] with Hq a multiple of Hkv; query head h uses KV head h // (Hq / Hkv).
    allowed : Tensor, optional
        Boolean [Lq, Lk]; a query without keys has out 0 and lse -inf.
    dout : Tensor, optional
        [B, Hq, Lq, D], the upstream gradient.

    Returns
    -------
    Exact
    """
    q, k, v = (x.detach().double().requires_grad_() for x in (q, k, v))
    shared = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(shared, dim=1) for x in (k, v))
    scores = q @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    out, lse = weights @ values, scores.detach().logsumexp(-1)
    if dout is None:
        return Exact(out.detach(), lse, *(torch.zeros_like(x) for x in (q, k, v)))
    # Of a scalar: with an upstream gradient, torch.autograd.grad loads sympy, which takes a second.
    dq, dk, dv = torch.autograd.grad((out * dout.double()).sum(), (q, k, v))
    return Exact(out.detach(), lse, dq, dk, dv)
