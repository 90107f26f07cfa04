"""What sees every operator that a rank computes: one dispatch mode in the rank's thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ringlab.world.errors import BufferHazard
from ringlab.world.virtual import internals
from ringlab.world.virtual.hazards import Hazards
from ringlab.world.virtual.recording import Recording

Fail = Callable[[BaseException], NoReturn]


class Observer(TorchDispatchMode):
    """Records the operators of one rank, and watches the buffers that are in flight.

    It sees them below autograd, as they reach a kernel: forward and backward, in inference mode,
    with data or on ``meta``. An operator of a library, as ``ringlab::attend``, is one, and what
    it is made of is not seen. Tensor subclasses, as ``DTensor``, are taken apart first, so that
    what is seen is what the rank itself computes.

    While it watches, functions compiled by ``torch.compile`` run operator by operator, so that
    all they compute is seen: a loop that inductor has fused could be neither recorded nor priced.

    Parameters
    ----------
    rank : int
    recording : Recording
    hazards : Hazards
        What the rank must not touch.
    fail : callable
        Ends the run with an error.
    """

    supports_higher_order_operators = True

    def __init__(self, rank: int, recording: Recording, hazards: Hazards, fail: Fail) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self._rank, self._recording, self._hazards, self._fail = rank, recording, hazards, fail

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Torch asks: with False it compiles nothing for a thread that has this mode."""
        return False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch asks: with True it loads the compiler, two seconds, at the first operator."""
        return False

    def start(self) -> None:
        """See what the calling thread computes from here on, until its modes are dropped."""
        internals.push_mode(self)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call the operator, note it, and see what it has touched."""
        kwargs = kwargs or {}
        if internals.is_tracing():
            return func(*args, **kwargs)
        if not _PLAIN.issuperset(types):
            return NotImplemented
        if _is_composite(func):
            with internals.mode_pushed(self):
                return func.decompose(*args, **kwargs)
        result = func(*args, **kwargs)
        if not _is_unseen(func):
            work = self._recording.computed(self._rank, func, args, kwargs, result)
            if self._hazards and (work is None or work.kind != "free"):
                try:
                    self._hazards.touched(func, args, kwargs, work)
                except BufferHazard as hazard:
                    self._fail(hazard)
        return result


_COMMUNICATION = {"c10d", "_c10d_functional", "_c10d_functional_autograd"}
_PLAIN = {Tensor, torch.nn.Parameter}


@functools.cache
def _is_unseen(func: Any) -> bool:
    """Whether an operator touches no data itself: views, and what only starts an operation."""
    if getattr(func, "namespace", "") in _COMMUNICATION or getattr(func, "is_view", False):
        return True
    return torch.Tag.inplace_view in getattr(func, "tags", ())


@functools.cache
def _is_composite(func: Any) -> bool:
    """Whether an operator only calls others: torch takes it apart, but not in inference mode."""
    has_kernel = getattr(func, "has_kernel_for_dispatch_key", None)
    if has_kernel is None:
        return False
    return bool(has_kernel(torch._C.DispatchKey.CompositeImplicitAutograd))
