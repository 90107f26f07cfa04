"""Names that a program gives to its parts: what an event is labelled with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

import torch
from torch.profiler import record_function

Listener = Callable[[], object]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.labels: list[str] = []


_thread = _Thread()
_listeners: list[Listener] = []


class region:  # noqa: N801  used as a statement: with region("merge"): ...
    """Label what happens inside a ``with`` block.

    Every event that a world records inside carries the name of the innermost region. On real
    ranks a region also divides the compute that lies between two calls of
    ``torch.distributed``. While torch's profiler records, the region shows in its trace too.

    Parameters
    ----------
    name : str
        The library itself uses ``"attend"``, ``"merge"`` and ``"copy"``.

    Notes
    -----
    Regions belong to a thread, so virtual ranks have each their own. Where nothing records, a
    region costs about a microsecond; under ``torch.compile`` it is left out.

    Examples
    --------
    >>> from ringlab import World
    >>> from ringlab.timeline import region
    >>> import torch, torch.distributed as dist
    >>> def work():
    ...     with region("sum"):
    ...         dist.all_reduce(torch.ones(1))
    >>> with World(2) as world:
    ...     _ = world.run(work)
    ...     {event.label for event in world.timeline if event.kind == "collective"}
    {'sum'}
    """

    __slots__ = ("_name", "_noted", "_profiled")

    def __init__(self, name: str) -> None:
        self._name = name
        self._noted = False
        self._profiled: record_function | None = None

    def __enter__(self) -> None:
        if torch.compiler.is_compiling():
            return
        for listener in _listeners:
            listener()
        self._noted = True
        _thread.labels.append(self._name)
        if torch._C._autograd._profiler_enabled():
            self._profiled = record_function(self._name)
            self._profiled.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._noted:
            return
        if self._profiled is not None:
            self._profiled.__exit__(kind, error, trace)
        for listener in _listeners:
            listener()
        _thread.labels.pop()


def current_label() -> str:
    """Name of the innermost region around the caller, in its thread; empty outside of any."""
    labels = _thread.labels
    return labels[-1] if labels else ""


def labels_of_thread() -> list[str]:
    """Names of the regions around the calling thread, outermost first; the list itself."""
    return _thread.labels


def listen(listener: Listener) -> None:
    """Call `listener` before each beginning and each end of a region, in any thread.

    For recorders of processes that are a rank and nothing else; there is no way back.
    """
    _listeners.append(listener)
