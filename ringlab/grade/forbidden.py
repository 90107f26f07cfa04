"""What an answer may not call: the library's own methods are what it is asked to write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

ANSWERS = ("ringlab.prefill", "ringlab.decode", "ringlab.grade.oracle")
"""Packages and modules whose functions are withheld while an answer runs."""

_STUB = """
def refused(*_, **__):
    raise PermissionError({message!r})
"""


@contextmanager
def withheld(packages: tuple[str, ...] = ANSWERS) -> Iterator[None]:
    """Let every function of some packages refuse to run, however a caller came by it.

    Parameters
    ----------
    packages : tuple of str
        Names of packages or modules.

    Notes
    -----
    A function that is called raises `PermissionError`, which says to write it oneself. It holds
    for the whole process, and for names that were imported before.
    """
    before: list[tuple[FunctionType, CodeType]] = []
    try:
        for function in _functions(packages):
            before.append((function, function.__code__))
            function.__code__ = _refusal(function.__qualname__, function.__module__)
        yield
    finally:
        for function, code in before:
            function.__code__ = code


def belongs(module: str, packages: tuple[str, ...] = ANSWERS) -> bool:
    """Whether a module is one of some packages, or lies in one."""
    return any(module == name or module.startswith(f"{name}.") for name in packages)


@lru_cache(maxsize=16)
def _functions(packages: tuple[str, ...]) -> tuple[FunctionType, ...]:
    for name in packages:
        import_module(name)  # what is not there yet could not be withheld
    return tuple(_defined(packages))


def _defined(packages: tuple[str, ...]) -> Iterator[FunctionType]:
    for name, module in sorted(sys.modules.items()):
        if module is None or not belongs(name, packages):
            continue
        for value in list(vars(module).values()):
            if getattr(value, "__module__", None) != name:
                continue  # imported there, defined elsewhere
            members = vars(value).values() if isinstance(value, type) else (value,)
            for member in members:
                function = _function(member)
                if function is not None and not function.__code__.co_freevars:
                    yield function


def _function(member: Any) -> FunctionType | None:
    """The function behind a member of a module or of a class."""
    found: Callable[..., Any] | None = getattr(member, "__func__", getattr(member, "fget", member))
    found = getattr(found, "__wrapped__", found)
    return found if isinstance(found, FunctionType) else None


@lru_cache(maxsize=1024)
def _refusal(name: str, module: str) -> CodeType:
    message = (
        f"{name} of {module} does what this exercise asks for, so it may not be called here. "
        "Write it yourself."
    )
    made: dict[str, Any] = {}
    exec(_STUB.format(message=message), made)
    code: CodeType = made["refused"].__code__
    return code
