"""What a rank can refuse on its own: tensors, options and kernels that do not fit."""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ringlab.calls.support import Support
from ringlab.numerics.kernels import check_name, choose

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
DEVICES = ("cpu", "cuda", "meta")


def check_plain(name: str, support: Support, **tensors: Tensor) -> None:
    """Refuse what is no plain tensor [B, H, L, D].

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        Saying what was given, what is allowed and what to do.
    """
    if _under_transform():
        raise support.refused("vmap and other torch.func transforms", name)
    for label, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: {label} is a {type(tensor).__name__}, not a Tensor.")
        kind = _special(tensor)
        if kind:
            raise support.refused("DTensor, nested and sparse tensors", name, f"{label} is {kind}")
        if tensor.dim() != 4:
            raise ValueError(
                f"{name}: {label} must be [B, H, L, D]; its shape is {list(tensor.shape)}."
            )
        if forward_ad.unpack_dual(tensor).tangent is not None:
            raise support.refused("forward-mode derivatives", name, f"{label} has a tangent")


def check_heads(name: str, queries: int, keys: int) -> None:
    """Refuse query heads that cannot share the KV heads evenly.

    Raises
    ------
    ValueError
        Saying how many KV heads would do.
    """
    if queries < 1 or keys < 1:
        raise ValueError(f"{name}: there are {queries} query heads and {keys} KV heads; pass some.")
    if queries % keys:
        allowed = [n for n in range(1, queries + 1) if queries % n == 0]
        raise ValueError(
            f"{name}: {queries} query heads cannot share {keys} KV heads ({queries} % {keys} = "
            f"{queries % keys}); pass k and v with {', '.join(map(str, allowed))} heads."
        )


def check_scale(name: str, scale: float | None) -> None:
    """Refuse a scale that is no positive number.

    Raises
    ------
    TypeError
        For another type; a tensor would lose its gradient.
    ValueError
        For a number that is not positive.
    """
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


def check_length(name: str, length: int | None) -> None:
    """Refuse a length that is no number of tokens.

    Raises
    ------
    TypeError, ValueError
    """
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
