"""Formats of weights and caches: those that take whole bytes."""

from __future__ import annotations

import torch

DTYPES: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.float8_e4m3fn,
    "fp8 e5m2": torch.float8_e5m2,
    "int8": torch.int8,
}
"""By the names that papers use. Torch packs narrower ones, so that an element has no itemsize."""


def check_dtype(name: str, dtype: torch.dtype) -> None:
    """Refuse what is no dtype, and dtypes that are not counted in whole bytes."""
    if dtype not in DTYPES.values():
        raise ValueError(
            f"{name} is one of {', '.join(map(str, DTYPES.values()))}; got {dtype!r}. "
            "ringlab.memory.DTYPES has them by name."
        )
