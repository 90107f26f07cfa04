"""How results lie in memory, the same for every kernel and for meta tensors.

A compiled graph plans with the strides that the meta implementation of an operator
announces, so the kernels may not each have their own habit.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _is_sequence_major(x: Tensor) -> bool:
    """True for [B, L, H, D] memory seen as [B, H, L, D], as a projection leaves it."""
    return not x.is_contiguous() and x.transpose(1, 2).is_contiguous()


def empty_sequence_major(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Allocate [B, H, L, D] over [B, L, H, D] memory, as fused kernels write gradients."""
    batch, heads, length, head_dim = x.shape
    shape = (batch, length, heads, head_dim)
    return torch.empty(shape, dtype=dtype, device=x.device).transpose(1, 2)


def empty_like(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Allocate the shape of `x`: sequence-major if `x` is, else contiguous."""
    if _is_sequence_major(x):
        return empty_sequence_major(x, dtype)
    return torch.empty(x.shape, dtype=dtype, device=x.device)


def as_output(out: Tensor, like: Tensor, dtype: torch.dtype) -> Tensor:
    """Give `out` the dtype and the memory of ``empty_like(like, dtype)``."""
    fits = out.transpose(1, 2) if _is_sequence_major(like) else out
    if out.dtype == dtype and fits.is_contiguous():
        return out
    return empty_like(like, dtype).copy_(out)


def as_gradient(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """Give `grad` the dtype and sequence-major memory."""
    if grad.dtype == dtype and grad.transpose(1, 2).is_contiguous():
        return grad
    return empty_sequence_major(grad, dtype).copy_(grad)


def rows_contiguous(x: Tensor) -> Tensor:
    """Copy `x` only if its head dimension is strided.

    The fused CPU operator reads such a tensor as if it were dense and returns garbage.
    """
    return x if x.stride(-1) == 1 else x.contiguous()
