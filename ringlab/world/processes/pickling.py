"""Functions, arguments and results as bytes, notebook cells included.

cloudpickle ships what a notebook defines by value. It also renames the file of every code
object, so that tracebacks lose their lines; here the names stay, and the text of the cells
travels along.
"""

from __future__ import annotations

import io
import linecache
import os
import pickle
import types
from collections.abc import Callable
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it has no types
from torch import Tensor

from ringlab.world.processes import tensors


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.sources: dict[str, str] = {}

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, types.CodeType):
            return self._reduce_code(obj)
        if isinstance(obj, Tensor):
            return tensors.reduce(obj) or NotImplemented
        return super().reducer_override(obj)

    def _reduce_code(self, code: types.CodeType) -> Any:
        name = code.co_filename
        if name not in self.sources and not os.path.exists(name):
            self.sources[name] = "".join(linecache.getlines(name))
        factory, parts = self.dispatch_table[types.CodeType](code)
        return _restore_code, (name, factory, parts)


def _restore_code(
    name: str, factory: Callable[..., types.CodeType], parts: tuple[Any, ...]
) -> types.CodeType:
    return factory(*parts).replace(co_filename=name)


def dumps(value: object) -> tuple[bytes, dict[str, str]]:
    """Pickle a value.

    Returns
    -------
    data : bytes
    sources : dict
        Text of each source file that exists nowhere but in this process.

    Raises
    ------
    TypeError
        If a part of the value cannot leave this process.
    """
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    try:
        pickler.dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError) as error:
        raise TypeError(
            f"cannot be sent to another process: {error}. Open files, locks, streams, process "
            "groups and running generators live in one process; create them inside the function."
        ) from error
    return buffer.getvalue(), {name: text for name, text in pickler.sources.items() if text}


def loads(data: bytes | bytearray) -> Any:
    """Undo :func:`dumps`."""
    return pickle.loads(data)


def remember(sources: dict[str, str]) -> None:
    """Let tracebacks and ``inspect`` in this process find the text of a notebook's cells."""
    for name, text in sources.items():
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
