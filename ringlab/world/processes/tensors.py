"""How tensors travel: their bytes, once, and where they come to life again.

torch pickles the whole storage behind a view and copies it several times. Here a tensor
sends only the elements it spans, and keeps its shape, strides, dtype and ``requires_grad``.
The graph that computed it stays behind, and so do shared storage and hooks.
"""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_home: torch.device | None = None


def set_home(device: torch.device | None) -> None:
    """Let tensors that arrive in this process go to `device`; None means CPU memory."""
    global _home
    _home = device


def reduce(tensor: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]] | None:
    """How to pickle a tensor, in the form that ``__reduce__`` returns; None for torch's way.

    Plain tensors in CPU or GPU memory are handled here; subclasses, sparse and quantised
    tensors and those without data are not.
    """
    plain = type(tensor) is Tensor and tensor.layout is torch.strided
    if not plain or tensor.is_quantized or tensor.device.type not in ("cpu", "cuda"):
        return None
    if vars(tensor):  # attributes that a person attached
        return None
    data = tensor.detach().resolve_conj().resolve_neg().cpu()
    span = _span(data)
    if span > 2 * data.numel():
        data = data.contiguous()
        span = data.numel()
    description = (data.dtype, tuple(data.shape), tuple(data.stride()), tensor.requires_grad)
    return _rebuild, (_bytes(data, span * data.element_size()), *description)


def _span(data: Tensor) -> int:
    """Elements between the first and the last that a view can reach, both included."""
    if data.numel() == 0:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(data.shape, data.stride(), strict=True))


def _bytes(data: Tensor, size: int) -> pickle.PickleBuffer | bytearray:
    if size == 0:
        return bytearray()
    view = (ctypes.c_char * size).from_address(data.data_ptr())
    view._owner = data  # type: ignore[attr-defined]  # keeps the memory alive with the view
    return pickle.PickleBuffer(view)


def _rebuild(
    data: bytearray | bytes,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
) -> Tensor:
    with torch.inference_mode(False), torch.device("cpu"):
        if not len(data):
            tensor = torch.empty_strided(shape, stride, dtype=dtype)
        else:
            writable = data if isinstance(data, bytearray) else bytearray(data)
            tensor = torch.frombuffer(writable, dtype=dtype).as_strided(shape, stride)
        if _home is not None:
            tensor = tensor.to(_home)
        return tensor.requires_grad_(requires_grad)
