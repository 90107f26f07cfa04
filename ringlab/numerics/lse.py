"""The log-sum-exp on its way from a kernel into a state, and from a state into a backward."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def lse_dtype(device: torch.device) -> torch.dtype:
    """Dtype of the LSE of a state: float64, or float32 where the device has no float64.

    Merging n blocks rounds the LSE n times, and every weight of a row inherits the error. In
    float32 that makes 32 blocks twice as wrong as one; float64 costs 1 / D of the output.
    """
    return torch.float32 if device.type == "mps" else torch.float64


def canonical_lse(lse: Tensor, out: Tensor, *, base: float = math.e) -> Tensor:
    """Bring `lse` to contiguous [B, H, L], natural logarithm, the dtype of a state's LSE.

    Parameters
    ----------
    lse : Tensor
        As a kernel returned it; see `AttentionState.canonical`.
    out : Tensor
        [B, H, L, D], the output that belongs to it.
    base : float
        Base of the logarithm in `lse`.

    Raises
    ------
    TypeError
        If there is no LSE at all.
    ValueError
        If its shape does not fit, or `base` is not a base.
    """
    if not isinstance(lse, Tensor):
        raise TypeError(
            f"The kernel returned {type(lse).__name__} for its LSE. A block without an LSE cannot "
            f"be merged with others; use a kernel of ringlab.numerics.available_kernels()."
        )
    rows = out.shape[:-1]
    found = lse.squeeze(-1) if lse.dim() == 4 and lse.shape[-1] == 1 else lse
    if found.dim() != 3 or found.shape[:2] != rows[:2] or found.shape[2] < rows[2]:
        raise ValueError(
            f"The LSE of an output {list(out.shape)} must be {list(rows)}, {[*rows, 1]} or padded "
            f"in its last axis; got {list(lse.shape)}."
        )
    found = found[:, :, : rows[2]].to(lse_dtype(lse.device))
    return (found if base == math.e else found * log_of(base)).contiguous()


def final_lse(lse: Tensor, dtype: torch.dtype) -> Tensor:
    """Prepare a final LSE for the backward of a kernel: of `dtype`, and without -inf.

    With lse = +inf an empty row weighs every key exp(s - inf) = 0; with -inf kernels compute
    exp(-inf + inf), which is NaN.
    """
    return lse.masked_fill(lse == -math.inf, math.inf).to(dtype)


def log_of(base: float) -> float:
    """Natural logarithm of the base of a logarithm.

    Raises
    ------
    ValueError
        If `base` is not a base.
    """
    if not (0.0 < base < math.inf) or base == 1.0:
        raise ValueError(f"The base of a logarithm is positive and not 1; got {base}.")
    return math.log(base)
