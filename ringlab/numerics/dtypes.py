"""Which dtypes attention takes and which dtype each accumulates in."""

from __future__ import annotations

import torch

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SIXTEEN_BIT = (torch.float16, torch.bfloat16)


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Dtype of partial results: float64 for float64 inputs, float32 for all others."""
    return torch.float64 if dtype == torch.float64 else torch.float32
