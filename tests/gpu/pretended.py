"""CUDA where there is none: tensors on it have shapes and a device, and no numbers.

Torch's fake tensors check every operator as CUDA would: tensors of two devices do not mix, and
nobody may ask for a number, which on a GPU would make the host wait. Their gradients cannot be
asked of autograd, whose C++ wants a real device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.testing._internal.distributed.fake_pg import FakeStore

CUDNN_OF_TODAY = 91600


class Stream:
    """A stream whose time passes when a test says so, and which can be behind."""

    def __init__(self) -> None:
        self.now = 0.0
        self.capturing = False
        self.reached = float("inf")
        self.broken = False


class Event:
    """Stands in for ``torch.cuda.Event`` on the one `Stream` that there is."""

    stream: Stream

    def __init__(self, enable_timing: bool = False) -> None:
        self.timed = enable_timing

    def record(self) -> None:
        assert not self.stream.capturing
        self.at = self.stream.now

    def query(self) -> bool:
        if self.stream.broken:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return self.at <= self.stream.reached

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: Event) -> float:
        assert self.timed
        assert other.timed
        return (other.at - self.at) * 1e3


def stream(patch: pytest.MonkeyPatch) -> Stream:
    """Let what ringlab asks of CUDA's streams be answered by a `Stream`."""
    made = Stream()
    patch.setattr(Event, "stream", made, raising=False)
    patch.setattr(torch.cuda, "Event", Event)
    patch.setattr(torch.cuda, "synchronize", lambda *_: None)
    patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: made.capturing)
    return made


def card(
    patch: pytest.MonkeyPatch,
    capability: tuple[int, int] = (9, 0),
    cudnn: int | None = CUDNN_OF_TODAY,
) -> None:
    """Let torch say that it has one GPU, of this compute capability."""
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "device_count", lambda: 1)
    patch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    patch.setattr(torch.version, "hip", None)
    patch.setattr(torch.backends.cudnn, "version", lambda: cudnn)


class _ByOperators(TorchFunctionMode):
    """Carry out by operators what torch's methods do not do without a real device."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is Tensor.__getitem__:
            return _view(*args)
        if func is Tensor.__setitem__:
            target, index, value = args
            view = _view(target, index)
            return _copy(view, value) if isinstance(value, Tensor) else view.fill_(value)
        if func is Tensor.copy_:
            return _copy(*args)
        if func is Tensor.__invert__:
            return torch.bitwise_not(*args)
        if func is Tensor.contiguous:
            (x,) = args
            return x if x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)
        return func(*args, **(kwargs or {}))


_copy: Callable[..., Tensor] = torch.ops.aten.copy_.default


def _view(x: Tensor, index: Any) -> Tensor:
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in parts:
        place = parts.index(Ellipsis)
        missing = x.dim() - sum(part is not None for part in parts) + 1
        parts[place : place + 1] = [slice(None)] * missing
    dim = 0
    for part in parts:
        if part is None:
            x, dim = x.unsqueeze(dim), dim + 1
        elif isinstance(part, slice):
            start, stop, step = part.indices(x.shape[dim])
            x, dim = torch.ops.aten.slice(x, dim, start, stop, step), dim + 1
        else:
            x = x.select(dim, int(part)) if isinstance(part, int) else x.index_select(dim, part)
            dim += isinstance(part, Tensor)
    return x


@contextmanager
def tensors(default: str = "cuda:0") -> Iterator[None]:
    """Let the tensors that are made have no numbers; on a device, unless they name another."""
    with FakeTensorMode(), torch.device(default), _ByOperators():
        yield


@contextmanager
def ranks(rank: int, size: int) -> Iterator[None]:
    """Be one rank of a group whose others never say anything."""
    dist.init_process_group("fake", rank=rank, world_size=size, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()
