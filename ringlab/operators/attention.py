"""Attention: FLOPs by the pairs that may attend, bytes by the operands and the result.

With `pairs` the (query, key) pairs that a tile allows, forward is 4·D·Hq·B·pairs FLOPs (two
products) and backward 10·D·Hq·B·pairs (five), as FlashAttention counts them. Torch's own
FLOP counter gives 0 for the fused CPU operator and does not halve a causal tile.

References
----------
Dao, FlashAttention-2, arXiv:2307.08691, section 4.1 (FLOPs forward; backward is 2.5 times).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ringlab.numerics import ops
from ringlab.numerics.flops import pairs
from ringlab.operators.sizes import Formula, dtype_name, size
from ringlab.timeline import Work

_aten: Any = torch.ops.aten


def attention_work(
    kind: str,
    q: Tensor,
    k: Tensor,
    mask: Tensor | None,
    causal: bool,
    *,
    products: int,
    read: int,
    written: int,
) -> Work:
    """Work of one tile of attention.

    Parameters
    ----------
    kind : {"attention", "attention backward"}
    q, k : Tensor
        [B, Hq, Lq, D] and [B, Hkv, Lk, D].
    mask : Tensor or None
        Boolean; one without data counts as if it allowed every pair.
    causal : bool
        Top-left aligned.
    products : int
        Matrix products over the pairs: 2 forward, 5 backward.
    read, written : int
        Bytes.
    """
    batch, heads, queries, head_dim = q.shape
    flops = 2 * products * batch * heads * head_dim * pairs(q, k, mask, causal)
    return Work(kind, flops, read, written, dtype_name(q.dtype), queries, k.shape[2], head_dim,
                causal)  # fmt: skip


def attend(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """``ringlab::attend``: read q, k, v and a mask, write the partial output and its LSE."""
    q, k, v, mask, causal = args[:5]
    return attention_work("attention", q, k, mask, causal, products=2, read=size(q, k, v, mask),
                          written=size(result))  # fmt: skip


def attend_backward(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """``ringlab::attend_backward``: read what forward had and its result, write dq, dk, dv."""
    dout, q, k, v, out, lse, mask, causal = args[:8]
    read = size(dout, q, k, v, out, lse, mask)
    return attention_work("attention backward", q, k, mask, causal, products=5, read=read,
                          written=size(result))  # fmt: skip


def _flag(args: Sequence[Any], kwargs: Mapping[str, Any], place: int) -> bool:
    value = args[place] if len(args) > place else kwargs.get("is_causal", False)
    return bool(value)


def fused(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """A fused forward of torch: (q, k, v, dropout_p, is_causal); an added mask is not a count."""
    q, k, v = args[:3]
    mask = kwargs.get("attn_mask")
    return attention_work("attention", q, k, None, _flag(args, kwargs, 4), products=2,
                          read=size(q, k, v, mask), written=size(result[:2]))  # fmt: skip


def fused_with_bias(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """A fused forward of torch that takes (q, k, v, bias, …) and is_causal by place or name."""
    q, k, v = args[:3]
    bias = args[3] if len(args) > 3 else None
    causal = kwargs.get("is_causal", args[6] if len(args) > 6 else False)
    return attention_work("attention", q, k, None, bool(causal), products=2,
                          read=size(q, k, v, bias), written=size(result[:2]))  # fmt: skip


def fused_backward(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """The fused CPU backward: (dout, q, k, v, out, lse, dropout_p, is_causal)."""
    q, k = args[1:3]
    mask = kwargs.get("attn_mask")
    return attention_work("attention backward", q, k, None, _flag(args, kwargs, 7), products=5,
                          read=size(args[:6], mask), written=size(result))  # fmt: skip


FORMULAS: dict[Any, Formula] = {
    ops.attend: attend,
    ops.attend_backward: attend_backward,
    _aten._scaled_dot_product_flash_attention_for_cpu: fused,
    _aten._scaled_dot_product_flash_attention: fused,
    _aten._scaled_dot_product_efficient_attention: fused_with_bias,
    _aten._scaled_dot_product_cudnn_attention: fused_with_bias,
    _aten._scaled_dot_product_fused_attention_overrideable: fused_with_bias,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: fused_backward,
}
