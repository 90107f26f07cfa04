"""How a function is called: refusals by name, and compilers kept outside."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

from ringlab.calls.support import Support

P = ParamSpec("P")
T = TypeVar("T")


def entry(support: Support) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function answer an argument it does not have with the reason and a way out.

    Under ``torch.compile`` the call is one graph break: what is inside waits for other ranks,
    which no graph may do at its own time.
    """

    def decorate(fn: Callable[P, T]) -> Callable[P, T]:
        known = set(inspect.signature(fn).parameters)

        @functools.wraps(fn)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            for name in kwargs:
                if name not in known:
                    raise support.unknown_argument(fn.__qualname__, name)
            if torch.compiler.is_dynamo_compiling():
                # Not a decorator: it imports the compiler, which takes seconds.
                result: T = torch.compiler.disable(fn)(*args, **kwargs)
                return result
            return fn(*args, **kwargs)

        return called

    return decorate
