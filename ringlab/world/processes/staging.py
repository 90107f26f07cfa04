"""Several ranks on one GPU: a backend that exchanges GPU tensors through host memory.

NCCL refuses two ranks on one GPU, and gloo has no point-to-point for GPU tensors. Here a
tensor on a GPU is copied to host memory, travels by gloo, and is copied back in ``wait``.
Tensors on the host go to gloo as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils import _pytree as pytree

from ringlab.world.processes import hooks
from ringlab.world.processes.last_op import Journal
from ringlab.world.processes.operations import METHODS

BACKEND = "ringlab_staged"

STAGED_DEVICES = ("cuda",)
"""Types of device whose tensors gloo must not see."""


class StagedWork(dist.Work):
    """The handle of an operation on copies; waiting brings the results back.

    Parameters
    ----------
    inner : Work
        gloo's handle.
    results : list of (Tensor, Tensor)
        The program's tensor and the host copy that gloo fills.
    """

    def __init__(self, inner: dist.Work, results: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self._inner, self._results = inner, results

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Block until the data are in the program's tensors."""
        done = self._inner.wait() if timeout is None else self._inner.wait(timeout)
        with torch.no_grad():
            for target, host in self._results:
                target.copy_(host)
        self._results = []
        return done

    def synchronize(self) -> None:
        """Same as `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the data have arrived in host memory."""
        return self._inner.is_completed()

    def is_success(self) -> bool:
        """Whether the exchange was carried out."""
        return self._inner.is_success()

    def _source_rank(self) -> int:
        return self._inner._source_rank()

    def get_future(self) -> torch.futures.Future[Any]:
        """A completed future: the call itself waits."""
        self.wait()
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result([])
        return future


class StagedGroup(dist.ProcessGroup):
    """A process group that hands host copies of GPU tensors to a gloo group.

    Parameters
    ----------
    inner : ProcessGroup
        A group with the gloo backend.
    name : str
        The name that torch gave this group.
    """

    def __init__(self, inner: dist.ProcessGroup, name: str) -> None:
        # torch declares only the constructor of a group that has backends
        super().__init__(inner.rank(), inner.size())  # type: ignore[call-arg]
        self._inner, self._name = inner, name

    @property
    def group_name(self) -> str:  # type: ignore[override]  # torch declares no getter
        """The name that torch gave this group."""
        return self._name

    @property
    def pg_name(self) -> str:
        """Same as `group_name`; functional collectives ask for it."""
        return self.group_name

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu"), torch.device("cuda")]

    def getBackendName(self) -> str:  # noqa: N802  torch's name
        """Name of the backend."""
        return BACKEND

    def name(self) -> str:
        """Name of the backend."""
        return BACKEND

    def barrier(self, opts: Any = None) -> dist.Work:
        """Wait for all members, on the host."""
        options = dist.distributed_c10d.BarrierOptions()
        options.device = torch.device("cpu")
        return StagedWork(self._inner.barrier(options), [])

    def shutdown(self) -> None:
        """Close the connections."""
        self._inner.shutdown()


def _staged(name: str) -> Callable[..., dist.Work]:
    def method(self: StagedGroup, *args: Any, **kwargs: Any) -> dist.Work:
        copies: dict[int, tuple[Tensor, Tensor]] = {}

        def to_host(value: Any) -> Any:
            if not isinstance(value, Tensor) or value.device.type not in STAGED_DEVICES:
                return value
            if id(value) not in copies:
                copies[id(value)] = (value, value.detach().to("cpu", copy=True).contiguous())
            return copies[id(value)][1]

        arguments = [_map(to_host, argument) for argument in args]
        work = getattr(self._inner, name)(*arguments, **kwargs)
        # every method but send writes into the tensors of its first argument
        written = [] if name == "send" else pytree.tree_leaves(args[0])
        return StagedWork(work, [copies[id(t)] for t in written if id(t) in copies])

    method.__name__ = name
    return method


def _map(function: Callable[[Any], Any], argument: Any) -> Any:
    """Apply a function to the tensors of an argument; options and numbers stay as they are."""
    if isinstance(argument, (list, tuple)):
        return [_map(function, item) for item in argument]
    return function(argument)


for _name in METHODS:
    if _name != "barrier" and hasattr(dist.ProcessGroup, _name):
        setattr(StagedGroup, _name, _staged(_name))


def _create(options: Any, _backend_options: Any = None) -> StagedGroup:
    """Make a group: called by torch for the default group and in ``new_group``."""
    rank, size = options.group_rank, options.group_size
    inner = dist.ProcessGroup(options.store, rank, size)
    kind = dist.ProcessGroup.BackendType.GLOO
    gloo = dist.ProcessGroupGloo(options.store, rank, size, timeout=options.timeout)
    inner._set_default_backend(kind)
    inner._register_backend(torch.device("cpu"), kind, gloo)
    return StagedGroup(inner, str(options.group_id))


def register(journal: Journal, devices: Sequence[str] = ("cpu", "cuda")) -> None:
    """Make the backend known to ``torch.distributed``, with its operations in `journal`."""
    hooks.note_group(journal, StagedGroup)
    hooks.note_work(journal, StagedWork)
    dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=list(devices))
