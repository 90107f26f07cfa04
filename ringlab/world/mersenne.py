"""The state of Python's ``random``, saved and restored at every turn of a rank.

``random.getstate`` makes 625 Python integers, which would cost more than the rest of a
turn. Where the memory of the generator has the expected form, which is checked when this
module is imported, the state is copied as bytes.
"""

from __future__ import annotations

import ctypes
import random
import struct
from typing import Any

_FORM = struct.Struct("=i624I")  # position, words
_OFFSET = object.__basicsize__
_GENERATOR: Any = random._inst  # what the module's functions use


def _has_form() -> bool:
    try:
        probe = random.Random(1)
        probe.random()
        raw = ctypes.string_at(id(probe) + _OFFSET, _FORM.size)
        position, *words = _FORM.unpack(raw)
    except Exception:
        return False
    return probe.getstate() == (3, (*words, position), None)


_FAST = _has_form()
_MEMORY = memoryview((ctypes.c_ubyte * _FORM.size).from_address(id(_GENERATOR) + _OFFSET)).cast("B")
"""The generator's own bytes; looked at only where they have the form."""


def save() -> Any:
    """The state of ``random``, for :func:`restore`."""
    if not _FAST:
        return random.getstate()
    return bytes(_MEMORY), _GENERATOR.gauss_next


def restore(state: Any) -> None:
    """Make a saved state that of ``random``."""
    if not _FAST:
        random.setstate(state)
        return
    _MEMORY[:], _GENERATOR.gauss_next = state


def seeded(seed: int) -> Any:
    """The state that ``random.seed(seed)`` leaves, for :func:`restore`."""
    _, numbers, gauss_next = random.Random(seed).getstate()
    if not _FAST:
        return 3, numbers, gauss_next
    *words, position = numbers
    return _FORM.pack(position, *words), gauss_next
