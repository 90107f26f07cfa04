"""Checks of what a caller passes, before any kernel sees it."""

from __future__ import annotations

import torch
from torch import Tensor

from ringlab.numerics.dtypes import DTYPES


def check_block(q: Tensor, k: Tensor, v: Tensor, causal: bool, mask: Tensor | None) -> None:
    """Raise unless the tensors are one block of attention; see `attend`.

    Raises
    ------
    TypeError
        On a dtype that is not supported or differs between the tensors.
    ValueError
        On shapes or devices that do not fit.
    """
    _check_dtypes(q, k, v)
    _check_shapes(q, k, v)
    if not q.device == k.device == v.device:
        raise ValueError(
            f"q, k and v must be on one device; got {q.device}, {k.device} and {v.device}."
        )
    if mask is not None:
        _check_mask(q, k, causal, mask)


def check_backward(dout: Tensor, q: Tensor, out: Tensor, lse: Tensor) -> None:
    """Raise unless upstream gradient and final result belong to the queries `q`."""
    if dout.shape != q.shape or out.shape != q.shape or lse.shape != q.shape[:-1]:
        raise ValueError(
            f"For queries {list(q.shape)} dout and out have that shape and lse is "
            f"{list(q.shape[:-1])}; got dout {list(dout.shape)}, out {list(out.shape)} and lse "
            f"{list(lse.shape)}."
        )
    if not q.device == dout.device == out.device == lse.device:
        raise ValueError(
            f"q, dout, out and lse must be on one device; got {q.device}, {dout.device}, "
            f"{out.device} and {lse.device}."
        )


def _check_dtypes(q: Tensor, k: Tensor, v: Tensor) -> None:
    if q.dtype not in DTYPES or not q.dtype == k.dtype == v.dtype:
        raise TypeError(
            f"q, k and v must share one dtype of float16, bfloat16, float32 and float64; got "
            f"{q.dtype}, {k.dtype} and {v.dtype}. Convert with .to(dtype)."
        )


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    if q.dim() != 4 or k.dim() != 4 or k.shape != v.shape:
        raise ValueError(
            f"q must be [B, Hq, Lq, D] and k and v both [B, Hkv, Lk, D]; got {list(q.shape)}, "
            f"{list(k.shape)} and {list(v.shape)}."
        )
    batch, heads, _, head_dim = q.shape
    kv_batch, kv_heads, _, kv_head_dim = k.shape
    if batch != kv_batch or head_dim != kv_head_dim or head_dim == 0:
        raise ValueError(
            f"q and k must agree in batch and head dimension, which is at least 1; got "
            f"{list(q.shape)} and {list(k.shape)}."
        )
    if kv_heads == 0 or heads % kv_heads != 0:
        raise ValueError(_head_counts(heads, kv_heads))


def _head_counts(heads: int, kv_heads: int) -> str:
    divisors = ", ".join(str(n) for n in range(1, heads + 1) if heads % n == 0)
    remainder = f" ({heads} % {kv_heads} = {heads % kv_heads})" if kv_heads else ""
    return (
        f"{heads} query heads cannot share {kv_heads} KV heads{remainder}; pass k and v with a "
        f"number of heads that divides {heads}: {divisors}."
    )


def _check_mask(q: Tensor, k: Tensor, causal: bool, mask: Tensor) -> None:
    if causal:
        raise ValueError(
            "A block is causal or has a mask, not both; put the diagonal into the mask: "
            "mask & torch.ones_like(mask).tril()."
        )
    if mask.dtype != torch.bool or mask.shape != (q.shape[2], k.shape[2]):
        raise ValueError(
            f"The mask must be boolean [Lq, Lk] = {[q.shape[2], k.shape[2]]}, True where a query "
            f"may attend; got {mask.dtype} {list(mask.shape)}."
        )
    if mask.device != q.device and not q.is_meta:
        raise ValueError(f"The mask must be on {q.device} like q; it is on {mask.device}.")
