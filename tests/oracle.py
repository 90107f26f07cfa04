"""Attention in float64 by its definition: what every other computation is compared with.

Shares no code with the library: scores, a softmax, a weighted sum, and autograd.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


@dataclass(frozen=True)
class Attention:
    """Results of attention: out [B, Hq, Lq, D], lse [B, Hq, Lq] and, with `dout`, gradients."""

    out: Tensor
    lse: Tensor
    dq: Tensor
    dk: Tensor
    dv: Tensor


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dout: Tensor | None = None,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> Attention:
    """Attention of q [B, Hq, Lq, D] over k and v [B, Hkv, Lk, D] in float64.

    A query may attend where `mask` [Lq, Lk] is True and, with `causal`, where the index of
    the key is not above its own. A query without keys has out 0, lse -inf and no gradient.
    Without `dout` the gradients are zero.
    """
    q, k, v = (x.detach().double().requires_grad_() for x in (q, k, v))
    allowed = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    if mask is not None:
        allowed = allowed & mask
    if causal:
        allowed = allowed & torch.ones_like(allowed).tril()
    repeat = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(repeat, dim=1) for x in (k, v))
    factor = q.shape[3] ** -0.5 if scale is None else scale
    scores = torch.einsum("bhqd,bhkd->bhqk", q, keys) * factor
    has_key = allowed.any(dim=1)
    # Rows without keys are computed as if they had all, then dropped, so that no NaN arises.
    open_rows = allowed | ~has_key[:, None]
    weights = scores.masked_fill(~open_rows, -torch.inf).softmax(dim=-1)
    weights = weights * has_key[:, None]
    out = torch.einsum("bhqk,bhkd->bhqd", weights, values)
    lse = scores.masked_fill(~allowed, -torch.inf).logsumexp(dim=-1)
    upstream = torch.zeros_like(out) if dout is None else dout.double()
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), upstream)
    return Attention(out.detach(), lse.detach(), dq, dk, dv)


def one_device(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dout: Tensor,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> Attention:
    """PyTorch's own attention and gradients in the dtype of the inputs; its lse is NaN.

    The honest baseline of an error: what a user gets without any library.
    """
    q, k, v = (x.detach().clone().requires_grad_() for x in (q, k, v))
    gqa = q.shape[1] != k.shape[1]
    out = scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=gqa
    )
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout.to(out.dtype))
    lse = torch.full(q.shape[:-1], torch.nan, dtype=torch.float64, device=q.device)
    return Attention(out.detach(), lse, dq, dk, dv)


def error(found: Tensor, exact: Tensor) -> float:
    """Relative error in the Frobenius norm; 0 where both are empty or zero."""
    difference = torch.linalg.vector_norm(found.double() - exact.double())
    size = torch.linalg.vector_norm(exact.double())
    return 0.0 if difference == 0 else (difference / size).item()
