"""Where in memory a tensor lies, and whether two tensors share a byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

EFFORT = 10_000
"""How many candidates numpy tries before two interleaved tensors count as overlapping."""


class Extent(NamedTuple):
    """The bytes of a tensor.

    Attributes
    ----------
    space : int
        What the addresses refer to: 0 for memory, which covers tensors that share it in whatever
        way; a storage of its own for tensors without data.
    low, high : int
        The first byte and the one behind the last.
    dense : bool
        Whether every byte between belongs to it.
    shape, strides : tuple of int
        In elements, and in bytes.
    itemsize : int
    """

    space: int
    low: int
    high: int
    dense: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int


def extent_of(tensor: Tensor) -> Extent | None:
    """The bytes of a tensor; None for one without elements or without strides."""
    count = tensor.numel()
    if not count or tensor.layout is not torch.strided:
        return None
    item = tensor.element_size()
    if tensor.is_meta:
        # where nothing is allocated, two tensors share bytes if they share a storage
        space, low = tensor.untyped_storage()._cdata, int(tensor.storage_offset()) * item
    else:
        space, low = 0, tensor.data_ptr()
    shape, strides = tensor.shape, tensor.stride()
    if tensor.is_contiguous():
        return Extent(space, low, low + count * item, True, shape, strides, item)
    steps = tuple(step * item for step in strides)
    length = item + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    return Extent(space, low, low + length, _packed(shape, steps, item), shape, steps, item)


def extent_of_buffer(tensor: Tensor) -> Extent | None:
    """As `extent_of`, quicker: for a contiguous tensor without data."""
    size, offset = tensor.nbytes, int(tensor.storage_offset())
    if not size:
        return None
    low = offset * tensor.element_size() if offset else 0
    space = tensor.untyped_storage()._cdata
    return Extent(space, low, low + size, True, (size,), (1,), 1)


def _packed(shape: Sequence[int], steps: Sequence[int], item: int) -> bool:
    """Whether the elements, in whatever order, fill the bytes from the first to the last."""
    expected = item
    for step, n in sorted((step, n) for n, step in zip(shape, steps, strict=True) if n > 1):
        if step != expected:
            return False
        expected *= n
    return True


def overlap(one: Extent, other: Extent) -> bool:
    """Whether two extents share a byte, also where their elements interleave."""
    if one.space != other.space or one.high <= other.low or other.high <= one.low:
        return False
    if one.dense and other.dense:
        return True
    base = min(one.low, other.low)
    try:
        return np.shares_memory(_array(one, base), _array(other, base), EFFORT)  # type: ignore[arg-type]  # numpy's stub
    except np.exceptions.TooHardError:
        return True


def follows(one: Extent, other: Extent) -> bool:
    """Whether `other` begins where `one` ends, with no byte left out in either."""
    return one.space == other.space and one.high == other.low and one.dense and other.dense


def joined(one: Extent, other: Extent) -> Extent:
    """Two extents that follow each other, as one."""
    size = other.high - one.low
    return Extent(one.space, one.low, other.high, True, (size,), (1,), 1)


class _Layout:
    """What numpy makes an array of without looking at its memory."""

    def __init__(self, extent: Extent, base: int) -> None:
        at = extent.low - base + 64  # numpy takes address 0 for none
        self.__array_interface__: dict[str, Any] = {"version": 3, "data": (at, True),
            "typestr": f"|V{extent.itemsize}", "shape": extent.shape}  # fmt: skip
        if not extent.dense:
            self.__array_interface__["strides"] = extent.strides


def _array(extent: Extent, base: int) -> np.ndarray[Any, Any]:
    if extent.dense:
        extent = extent._replace(shape=(extent.high - extent.low,), itemsize=1)
    return np.asarray(_Layout(extent, base))
