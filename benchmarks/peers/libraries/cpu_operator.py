"""PyTorch's fused attention on CPU, for loops that call a CUDA operator as shipped."""

from __future__ import annotations

import torch
from torch import Tensor

_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Out [B, H, L, D] and LSE [B, H, L] of one block."""
    out, lse = _forward(q, k, v, 0.0, causal)
    return out, lse


def backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """dQ, dK and dV of one block, from the out and LSE of the whole row."""
    dq, dk, dv = _backward(dout, q, k, v, out, lse, 0.0, causal)
    return dq, dk, dv
