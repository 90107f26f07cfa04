"""How tests ask what the world says about a program."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import torch.distributed as dist

from ringlab.world import World, WorldError

ORDERS = ("stream", "host")
E = TypeVar("E", bound=BaseException)


def verdict(program: Callable[..., Any], size: int, *args: Any, order: str = "stream") -> str:
    """Name what a program ends with: ``"ok"`` or the class of the world's error."""
    try:
        World(size, order=order).run(program, *args)
    except WorldError as error:
        return type(error).__name__
    return "ok"


def error_of(
    kind: type[E], program: Callable[..., Any], size: int, *args: Any, **options: Any
) -> E:
    """Run a program that must end with a certain error, and return that."""
    with pytest.raises(kind) as caught:
        World(size, **options).run(program, *args)
    return caught.value


def check_threads() -> None:
    """Assert that no rank's thread is left, and that the next run is fine."""
    end = time.monotonic() + 2
    while left := [t for t in threading.enumerate() if t.name.startswith("ringlab-rank")]:
        assert time.monotonic() < end, left
        time.sleep(0.01)
    assert World(2).run(dist.get_rank) == [0, 1]


def line_of(function: Callable[..., Any], text: str) -> str:
    """Give ``file:line in function`` of the only line of a function that contains `text`."""
    code = function.__code__
    with open(code.co_filename) as source:
        lines = source.read().splitlines()
    body = range(code.co_firstlineno, max(n for *_, n in code.co_lines() if n) + 1)
    (number,) = (n for n in body if text in lines[n - 1])
    return f"{code.co_filename.rsplit('/', 1)[-1]}:{number} in {function.__name__}"
