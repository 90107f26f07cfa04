"""Attention: FLOPs by the pairs that may attend, bytes by the operands and the result.

With `pairs` the (query, key) pairs that a tile allows, forward is 4·D·Hq·B·pairs FLOPs (two
products) and backward 10·D·Hq·B·pairs (five), as FlashAttention counts them. Torch's own
FLOP counter gives 0 for the fused CPU operator and does not halve a causal tile.

References
----------
Dao, FlashAttention-2, arXiv:2307.08691, section 4.1 (FLOPs forward; backward is 2.5 times).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


def fused(operator: Any) -> Formula:
    """Formula of a fused forward of torch; what an added mask excludes is counted all the same."""
    argument = _arguments(operator)

    def formula(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
        q, k, v = args[:3]
        read = size(q, k, v, *(argument(name, args, kwargs) for name in _ADDED))
        causal = bool(argument("is_causal", args, kwargs))
        return attention_work("attention", q, k, None, causal, products=2, read=read,
                              written=size(result[:2]))  # fmt: skip

    return formula


def fused_backward(operator: Any) -> Formula:
    """Formula of a fused backward of torch: (dout, q, k, v, …)."""
    argument = _arguments(operator)

    def formula(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
        q, k = args[1:3]
        rest = (argument(name, args, kwargs) for name in ("out", "logsumexp", *_ADDED))
        causal = bool(argument("is_causal", args, kwargs))
        return attention_work("attention backward", q, k, None, causal, products=5,
                              read=size(args[:4], *rest), written=size(result))  # fmt: skip

    return formula


_ADDED = ("attn_mask", "attn_bias")
"""What torch calls a tensor that is added to the scores."""


def _arguments(operator: Any) -> Callable[[str, Sequence[Any], Mapping[str, Any]], Any]:
    """Look up an argument of a call by its name, given by place or by name; None without it."""
    places = {x.name: place for place, x in enumerate(operator.default._schema.arguments)}

    def argument(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        place = places.get(name, len(args))
        return args[place] if place < len(args) else kwargs.get(name)

    return argument


FORMULAS: dict[Any, Formula] = {
    ops.attend: attend,
    ops.attend_backward: attend_backward,
}
for _name in (
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
):
    for _operator, _formula in ((_name, fused), (_name + "_backward", fused_backward)):
        FORMULAS[getattr(_aten, _operator)] = _formula(getattr(_aten, _operator))
