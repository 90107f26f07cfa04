"""Dispatch modes: who sees what a thread computes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_TRACING = tuple(torch._C._TorchDispatchModeKey.__members__.values())


def push_mode(mode: TorchDispatchMode) -> None:
    """Let a dispatch mode see what the calling thread computes, until :func:`drop_modes`.

    Entering it instead would set flags of the process, which the threads of a run would
    leave in the wrong order, and for which dynamo compiles nothing.
    """
    torch._C._push_on_torch_dispatch_stack(mode)


def drop_modes() -> None:
    """Take every dispatch mode from the calling thread, which is about to end.

    Else C++ would let go of them when the thread is gone, perhaps after Python itself.
    """
    while torch._C._len_torch_dispatch_stack():
        torch._C._pop_torch_dispatch_stack(None)


@contextlib.contextmanager
def mode_pushed(mode: TorchDispatchMode) -> Iterator[None]:
    """A context in which a dispatch mode sees what the calling thread computes."""
    torch._C._push_on_torch_dispatch_stack(mode)
    try:
        yield
    finally:
        torch._C._pop_torch_dispatch_stack(None)


def is_tracing() -> bool:
    """Whether the calling thread only traces: its tensors are fake, or operators make a graph."""
    if not torch._C._len_torch_dispatch_stack():
        return False
    return any(torch._C._get_dispatch_mode(key) is not None for key in _TRACING)


def unobserved() -> AbstractContextManager[None]:
    """A context in which no dispatch mode sees what the calling thread computes."""
    return torch._C._DisableTorchDispatch()
