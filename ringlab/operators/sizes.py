"""Bytes of tensors, and the work of an operator that does nothing but move them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ringlab.timeline import Work

Formula = Callable[[Sequence[Any], Mapping[str, Any], Any], Work]
"""From the arguments, the keyword arguments and the result of a call to its work."""

FREE = Work("free", 0, 0, 0, "", launches=0)
"""The work of a view, of an allocation and of a call that only looks at shapes."""

_NAMES: dict[torch.dtype, str] = {}


def dtype_name(dtype: torch.dtype) -> str:
    """Name a dtype as a recording does: ``"bfloat16"``."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


def tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in an argument or a result, which may be lists."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def size(*values: Any) -> int:
    """Bytes of every tensor in some arguments or results."""
    total = 0
    for value in values:
        if isinstance(value, Tensor):
            total += value.numel() * value.element_size()
        elif isinstance(value, (list, tuple)):
            total += size(*value)
    return total


def free(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """Nothing is computed and no memory is touched."""
    return FREE


def moved(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """Read every tensor given, write every tensor returned; ``out=`` is not read."""
    read = size(*args)
    for name, value in kwargs.items():
        if name != "out":
            read += size(value)
    return Work("memory", 0, read, size(result), _dtype(result, args))


def written(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """Write every tensor returned; nothing is read."""
    return Work("memory", 0, 0, size(result), _dtype(result, args))


def _dtype(*values: Any) -> str:
    """Dtype of the first tensor among some values; empty if there is none."""
    for value in values:
        for tensor in tensors(value):
            return dtype_name(tensor.dtype)
    return ""
