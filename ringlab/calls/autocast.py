"""Autocast, as it treats the inputs of scaled_dot_product_attention."""

from __future__ import annotations

import torch
from torch import Tensor


def autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Cast as autocast casts the inputs of scaled_dot_product_attention."""
    device = tensors[0].device.type
    if device == "meta" or not torch.is_autocast_enabled(device):
        return tensors
    kind = torch.get_autocast_dtype(device)
    return tuple(
        x.to(kind) if x.is_floating_point() and x.dtype != torch.float64 else x for x in tensors
    )
