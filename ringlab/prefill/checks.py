"""What a rank can refuse on its own, before any communication."""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ringlab.numerics.kernels import check_name, choose
from ringlab.prefill.support import refused

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
DEVICES = ("cpu", "cuda", "meta")


def check_tensors(name: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse what is no plain tensor [B, H, L, D].

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        Saying what was given, what is allowed and what to do.
    """
    if _under_transform():
        raise refused("vmap and other torch.func transforms", name)
    for label, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: {label} is a {type(tensor).__name__}, not a Tensor.")
        kind = _special(tensor)
        if kind:
            raise refused("DTensor, nested and sparse tensors", name, f"{label} is {kind}")
        if tensor.dim() != 4:
            raise ValueError(
                f"{name}: {label} must be [B, H, L, D]; its shape is {list(tensor.shape)}."
            )
        if forward_ad.unpack_dual(tensor).tangent is not None:
            raise refused("forward-mode derivatives", name, f"{label} has a tangent")


def check_inputs(name: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse shapes, dtypes and devices that no method can work on.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        Saying what was given, what is allowed and what to do.
    """
    _check_shapes(name, q, k, v)
    if q.dtype not in DTYPES or k.dtype != q.dtype or v.dtype != q.dtype:
        raise TypeError(
            f"{name}: q, k and v must share one dtype of {', '.join(map(short, DTYPES))}; they "
            f"are {short(q.dtype)}, {short(k.dtype)} and {short(v.dtype)}."
        )
    if q.device != k.device or q.device != v.device or q.device.type not in DEVICES:
        raise ValueError(
            f"{name}: q, k and v must be on one device of kind {', '.join(DEVICES)}; they are on "
            f"{q.device}, {k.device} and {v.device}."
        )


def check_options(name: str, causal: bool, scale: float | None, length: int | None) -> None:
    """Refuse options of another type, which would be misread in silence.

    Raises
    ------
    TypeError
        For a causal that is not a bool, or a scale or length that is not a number. (A scale
        that is a tensor would lose its gradient.)
    ValueError
        For a scale that is not positive or a length that is negative.
    """
    if not isinstance(causal, bool):
        raise TypeError(f"{name}: causal is True or False; got {causal!r}.")
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, (int, float))):
        raise TypeError(
            f"{name}: scale is a number or None; got {type(scale).__name__}. To learn a scale, "
            "multiply q by it and pass scale=1.0."
        )
    if scale is not None and not 0.0 < scale < math.inf:
        raise ValueError(
            f"{name}: scale is a positive number; got {scale}. Kernels mask by adding -inf before "
            "they scale; for another sign negate q."
        )
    if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
        raise TypeError(f"{name}: length is an int or None; got {length!r}.")
    if length is not None and length < 0:
        raise ValueError(f"{name}: length is a number of tokens, 0 or more; got {length}.")


def check_kernel(kernel: str | None, q: Tensor, k: Tensor, causal: bool) -> None:
    """Refuse a kernel that cannot compute tiles of these tensors.

    Raises
    ------
    ValueError
        Naming the kernels that can.
    """
    if kernel is None:
        return
    check_name(kernel)
    if not q.is_meta:
        choose(kernel, q, k, causal, False)


def short(dtype: torch.dtype) -> str:
    """Name a dtype without its module."""
    return str(dtype).removeprefix("torch.")


def _check_shapes(name: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    if k.shape[3] != v.shape[3]:
        raise refused(
            "values of another width than keys", name, f"D is {k.shape[3]} and {v.shape[3]}"
        )
    if k.shape != v.shape:
        raise ValueError(
            f"{name}: k and v must have one shape; they have {list(k.shape)} and {list(v.shape)}."
        )
    if q.shape[2] != k.shape[2]:
        raise refused(
            "cross-attention (Lq != Lk)",
            name,
            f"q has {q.shape[2]} tokens and k {k.shape[2]} on this rank",
        )
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or q.shape[3] == 0:
        raise ValueError(
            f"{name}: q and k must agree in B and in D, which is at least 1; they are "
            f"{list(q.shape)} and {list(k.shape)}."
        )
    _check_heads(name, q.shape[1], k.shape[1])


def _check_heads(name: str, queries: int, keys: int) -> None:
    if queries < 1 or keys < 1:
        raise ValueError(f"{name}: there are {queries} query heads and {keys} KV heads; pass some.")
    if queries % keys:
        allowed = [n for n in range(1, queries + 1) if queries % n == 0]
        raise ValueError(
            f"{name}: {queries} query heads cannot share {keys} KV heads ({queries} % {keys} = "
            f"{queries % keys}); pass k and v with {', '.join(map(str, allowed))} heads."
        )


def _special(tensor: Tensor) -> str:
    """What else than a plain dense tensor it is, or nothing."""
    if tensor.is_nested:
        return "nested"
    if tensor.layout != torch.strided:
        return str(tensor.layout)
    module = sys.modules.get("torch.distributed.tensor")  # no DTensor without it
    return "a DTensor" if module is not None and isinstance(tensor, module.DTensor) else ""


def _under_transform() -> bool:
    peek = getattr(torch._C._functorch, "peek_interpreter_stack", None)
    return peek is not None and peek() is not None
