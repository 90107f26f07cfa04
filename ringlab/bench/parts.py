"""Where the CPU time of a rank goes: kernel, merge, copies, the rest, other threads, waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PREFIXES = {
    "aten::_scaled_dot_product": "kernel",
    "aten::_flash_attention": "kernel",
    "ringlab::merge": "merge",
    "c10d::": "transport",
}
BLOCK = "ringlab::attend"

PARTS = ("kernel", "merge", "copies", "program", "transport")
"""What CPU time is divided into.

kernel
    The attention kernels.
merge
    Partial results put together.
copies
    Every other operator: packing, casts, sums of gradients, rounding.
program
    The rest of the rank's own thread: Python, autograd, memory given back.
transport
    Posting messages, and all other threads of the process, which are gloo's.
"""
WAITING = "waiting"
"""Wall time in which the rank's own thread did not run. It costs no CPU time."""


class _Mode(TorchDispatchMode):
    """A dispatch mode that does not load the compiler, which would take seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Parts(_Mode):
    """Divides the time between entering and leaving over `PARTS` and `WAITING`.

    Attributes
    ----------
    seconds : dict of str to float
        Filled when the block is left. The parts add up to the CPU time of the process, and
        those of the rank's own thread with the waiting to the wall time.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self.seconds: dict[str, float] = dict.fromkeys((*PARTS, WAITING), 0.0)

    def __enter__(self) -> Parts:
        super().__enter__()  # type: ignore[no-untyped-call]  # torch
        self._began = _clocks()
        return self

    def __exit__(self, *exception: Any) -> None:
        wall, process, thread = (
            end - begin for end, begin in zip(_clocks(), self._began, strict=True)
        )
        super().__exit__(*exception)  # type: ignore[no-untyped-call]  # torch
        operators = sum(self.seconds.values())
        self.seconds["program"] = thread - operators
        self.seconds["transport"] += process - thread
        self.seconds[WAITING] = wall - thread

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operator on the clock; look inside a block of attention."""
        name = str(getattr(func, "_schema", func)).partition("(")[0]
        if name.startswith(BLOCK):
            return self._look_inside(func, args, kwargs or {})
        began = time.thread_time()
        result = func(*args, **(kwargs or {}))
        self.seconds[_part(name)] += time.thread_time() - began
        return result

    def _look_inside(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        with _Inner(self):
            return func.redispatch(cpu, *args, **kwargs)


class _Inner(_Mode):
    """The operators inside a block, which count for the mode around it."""

    def __init__(self, outer: Parts) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self._outer = outer

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return self._outer.__torch_dispatch__(func, types, args, kwargs)


def _part(name: str) -> str:
    return next((part for prefix, part in PREFIXES.items() if name.startswith(prefix)), "copies")


def _clocks() -> tuple[float, float, float]:
    return time.perf_counter(), time.process_time(), time.thread_time()
