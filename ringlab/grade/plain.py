"""Plain data: what an answer may return, and how it travels as bytes without pickle.

None, booleans, integers, floats, strings, tensors, and lists, tuples and dicts of such. Types are
compared exactly: an object of a subclass could behave as it likes, so it is refused.
"""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias

import torch
from torch import Tensor

Plain: TypeAlias = (
    bool | int | float | str | Tensor | list["Plain"] | tuple["Plain", ...]
    | dict["str | int", "Plain"] | None
)  # fmt: skip

DTYPES = {
    str(kind).removeprefix("torch."): kind
    for kind in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.bool,
    )
}  # fmt: skip
DEEPEST = 20
MAGIC = b"ringlab plain 1\n"


class NotPlain(TypeError):
    """A value is not plain data; the message says where and of what type."""


def plain(value: Any, where: str = "the result") -> Plain:
    """Copy plain data, so that nothing is shared with the original.

    Parameters
    ----------
    value : object
    where : str
        What to call the value in an error.

    Returns
    -------
    Plain
        Tensors are contiguous, without gradients, and share no memory with `value`.

    Raises
    ------
    NotPlain
        If something in it is not exactly of one of the types, or nested too deeply.
    """
    return _plain(value, where, 0)


def _plain(value: Any, where: str, depth: int) -> Plain:
    kind = type(value)
    if depth > DEEPEST:
        raise NotPlain(f"{where} is nested more than {DEEPEST} levels deep.")
    if value is None or _is(kind, bool, int, float, str):
        return value  # type: ignore[no-any-return]
    if kind is Tensor:
        return _tensor(value, where)
    if kind is list:
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if kind is tuple:
        return tuple(_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value))
    if kind is dict:
        if not all(_is(type(key), str, int) for key in value):
            raise NotPlain(f"{where} has keys that are neither strings nor integers.")
        return {k: _plain(item, f"{where}[{k!r}]", depth + 1) for k, item in value.items()}
    raise NotPlain(
        f"{where} is of type {kind.__name__}. Return tensors, numbers, strings, or lists, tuples "
        "and dicts of them; of another type make one, as with int(x), list(x) or x.detach()."
    )


def _is(kind: type, *kinds: type) -> bool:
    """Whether a type is one of several; not whether its metaclass says that it equals one."""
    return any(kind is one for one in kinds)


def _tensor(value: Tensor, where: str) -> Tensor:
    if value.layout != torch.strided or value.device.type not in ("cpu", "meta"):
        raise NotPlain(f"{where} is a {value.layout} tensor on {value.device}; return it on cpu.")
    if _name(value.dtype) not in DTYPES:
        raise NotPlain(f"{where} has the dtype {value.dtype}; known are {', '.join(DTYPES)}.")
    return value.detach().clone(memory_format=torch.contiguous_format)


def dump(value: Plain) -> bytes:
    """Write plain data as bytes: a JSON header, then the raw bytes of the tensors.

    Raises
    ------
    NotPlain
        If `value` is not plain.
    """
    blobs: list[bytes] = []
    header = json.dumps(_encoded(plain(value), blobs), separators=(",", ":")).encode()
    return b"".join([MAGIC, len(header).to_bytes(8, "big"), header, *blobs])


def load(data: bytes) -> Plain:
    """Read what `dump` wrote; whatever the bytes, only plain data comes out.

    Raises
    ------
    ValueError
        If the bytes are anything else.
    """
    start = len(MAGIC) + 8
    if type(data) is not bytes or data[: len(MAGIC)] != MAGIC or len(data) < start:
        raise ValueError("these bytes hold no plain data.")
    end = start + int.from_bytes(data[len(MAGIC) : start], "big")
    if end > len(data):
        raise ValueError("the header of plain data is cut short.")
    try:
        reader = _Reader(memoryview(data)[end:])
        value = reader.value(json.loads(data[start:end].decode()), 0)
    except (LookupError, OverflowError, RuntimeError, TypeError) as error:
        raise ValueError(f"these bytes hold no plain data: {type(error).__name__}.") from None
    if reader.at != len(reader.blob):
        raise ValueError("plain data has bytes left over.")
    return value


def _encoded(value: Plain, blobs: list[bytes]) -> Any:
    """Containers and tensors as ``[tag, ...]``; the rest as it is."""
    if isinstance(value, Tensor):
        device, shape = value.device.type, list(value.shape)
        if device != "meta":
            blobs.append(value.reshape(-1).view(torch.uint8).numpy().tobytes())
        return ["tensor", _name(value.dtype), shape, device]
    if isinstance(value, float) and not math.isfinite(value):
        return ["float", repr(value)]
    if isinstance(value, dict):
        return ["dict", [[key, _encoded(item, blobs)] for key, item in value.items()]]
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, [_encoded(item, blobs) for item in value]]
    return value


class _Reader:
    """Makes values of a header; takes the tensors' bytes one after another."""

    def __init__(self, blob: memoryview) -> None:
        self.blob, self.at = blob, 0

    def value(self, code: Any, depth: int) -> Plain:
        if depth > DEEPEST:
            raise ValueError("plain data is nested too deeply.")
        if not isinstance(code, list):
            if code is None or type(code) in (bool, int, float, str):
                return code  # type: ignore[no-any-return]
            raise ValueError("a JSON object is no plain data.")
        tag, *rest = code or [None]
        if tag == "tensor":
            return self._tensor(*rest)
        if tag == "float" and rest in (["nan"], ["inf"], ["-inf"]):
            return float(rest[0])
        if tag == "dict":
            pairs = [(key, self.value(item, depth + 1)) for key, item in rest[0]]
            if any(type(key) not in (str, int) for key, _ in pairs):
                raise ValueError("a key of plain data is neither a string nor an integer.")
            return dict(pairs)
        if tag in ("list", "tuple"):
            items = [self.value(item, depth + 1) for item in rest[0]]
            return items if tag == "list" else tuple(items)
        raise ValueError(f"plain data has no {tag!r}.")

    def _tensor(self, dtype: str, shape: list[int], device: str) -> Tensor:
        kind = DTYPES[dtype]
        if device not in ("cpu", "meta") or any(type(n) is not int or n < 0 for n in shape):
            raise ValueError("a tensor of plain data has a strange shape or device.")
        if device == "meta":
            return torch.empty(shape, dtype=kind, device="meta")
        size = math.prod(shape) * kind.itemsize
        piece = self.blob[self.at : self.at + size]
        if len(piece) != size:
            raise ValueError("a tensor of plain data is cut short.")
        self.at += size
        if not size:
            return torch.empty(shape, dtype=kind)
        return torch.frombuffer(bytearray(piece), dtype=torch.uint8).view(kind).reshape(shape)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
