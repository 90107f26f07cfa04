"""Where the CPU time of a rank goes: kernel, merge, copies, the rest, other threads, waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ringlab.bench.readings import WAITING, Reading

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


class _Mode(TorchDispatchMode):
    """A dispatch mode that does not load the compiler, which would take seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Parts(_Mode):
    """Divides the time between entering and leaving over `PARTS` and `WAITING`.

    Parameters
    ----------
    clock : callable
        The CPU clock of operators: that of the rank's own thread, or `time.process_time` where
        operators run on several threads and none of them is a transport's.

    Attributes
    ----------
    reading : Reading
        Made when the block is left, with its parts. They add up to the CPU time of the process,
        and those of the rank's own thread with the waiting to the wall time, both less the time
        that the meter itself took between the operators.
    """

    reading: Reading

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._clock, self._meter = clock, 0.0

    def __enter__(self) -> Parts:
        super().__enter__()  # type: ignore[no-untyped-call]  # torch
        self._began = self._clocks()
        return self

    def __exit__(self, *exception: Any) -> None:
        wall, process, own = (
            end - begin for end, begin in zip(self._clocks(), self._began, strict=True)
        )
        super().__exit__(*exception)  # type: ignore[no-untyped-call]  # torch
        seconds = self._seconds
        seconds["program"] = own - sum(seconds.values()) - self._meter
        seconds["transport"] += process - own
        cpu = process - self._meter
        self.reading = Reading(wall - self._meter, cpu, {**seconds, WAITING: max(0.0, wall - own)})

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operator on the clock; look inside a block of attention."""
        entered = self._clock()
        name = func.name() if isinstance(func, torch._ops.OpOverload) else str(func)
        if name.startswith(BLOCK):
            cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
            with _Inner(self):
                self._meter += self._clock() - entered
                return func.redispatch(cpu, *args, **(kwargs or {}))
        began = self._clock()
        result = func(*args, **(kwargs or {}))
        ended = self._clock()
        self._seconds[_part(name)] += ended - began
        self._meter += began - entered + self._clock() - ended
        return result

    def _clocks(self) -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), self._clock()


class _Inner(_Mode):
    """The operators inside a block, which count for the mode around it."""

    def __init__(self, outer: Parts) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self._outer = outer

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return self._outer.__torch_dispatch__(func, types, args, kwargs)


def _part(name: str) -> str:
    return next((part for prefix, part in PREFIXES.items() if name.startswith(prefix)), "copies")
