"""Whether an answer replaced functions of torch, of Python or of this package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ringlab.grade.forbidden import belongs

PACKAGES = ("ringlab", "torch.distributed")
_KINDS = (FunctionType, BuiltinFunctionType, type, staticmethod, classmethod, property)
MODULES = ("torch", "torch.nn.functional", "builtins", "json", "os", "gc", "sys", "threading")


def fingerprint(but: tuple[str, ...]) -> Callable[[], str]:
    """Remember which functions and classes are where.

    Parameters
    ----------
    but : tuple of str
        Packages and modules that are withheld from answers, and changed for that.

    Returns
    -------
    callable
        Gives the name of the first that was replaced since, or whose code was; or an empty
        string. Names that were added do not matter.
    """
    kept = [
        (space, name, value, value.__code__ if type(value) is FunctionType else None, told)
        for space, told in _spaces(but)
        for name, value in list(space.items())
        if issubclass(type(value), _KINDS)  # not isinstance, which asks the value for its class
        and not (type(value) is FunctionType and belongs(value.__module__ or "", but))
    ]

    def changed() -> str:
        for space, name, value, code, told in kept:
            if space.get(name) is not value or (code is not None and value.__code__ is not code):
                return f"{told}.{name}"
        return ""

    return changed


def _spaces(but: tuple[str, ...]) -> Iterator[tuple[Any, str]]:
    """Namespaces of modules, and of the classes that they define."""
    for name, module in sorted(sys.modules.items()):
        if module is None or not (belongs(name, PACKAGES) or name in MODULES):
            continue
        if belongs(name, but):
            continue
        yield vars(module), name
        if belongs(name, PACKAGES):
            for value in list(vars(module).values()):
                if issubclass(type(value), type) and value.__module__ == name:
                    yield vars(value), f"{name}.{value.__qualname__}"
    tensor = vars(sys.modules["torch"])["Tensor"]
    yield vars(tensor), "torch.Tensor"
