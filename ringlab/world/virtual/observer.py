"""What sees every operator that a rank computes: one dispatch mode in the rank's thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ringlab.world.errors import BufferHazard
from ringlab.world.source import current_site
from ringlab.world.virtual import modes
from ringlab.world.virtual.calls import Calls, facts_of
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
    calls : Calls
    hazards : Hazards
        What the rank must not touch.
    fail : callable
        Ends the run with an error.
    """

    supports_higher_order_operators = True

    def __init__(
        self, rank: int, recording: Recording, calls: Calls, hazards: Hazards, fail: Fail
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self._rank, self._recording, self._calls = rank, recording, calls
        self._hazards, self._fail = hazards, fail

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
        modes.push_mode(self)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call the operator, note it, and see what it has touched."""
        if _depth() and modes.is_tracing():
            return func(*args, **(kwargs or {}))
        if types and not _PLAIN.issuperset(types):
            return NotImplemented
        facts = facts_of(func)
        if facts.composite:
            with modes.mode_pushed(self):
                return func.decompose(*args, **(kwargs or {}))
        if facts.unseen:
            return func(*args, **kwargs) if kwargs else func(*args)
        kwargs = kwargs or {}
        result, call = self._calls.made(facts, args, kwargs)
        if not call.free:
            self._recording.computed(self._rank, call, current_site())
            if self._hazards:
                try:
                    self._hazards.touched(facts, args, kwargs, call.work)
                except BufferHazard as hazard:
                    self._fail(hazard)
        return result


_PLAIN = {Tensor, torch.nn.Parameter}
_depth = torch._C._len_torch_dispatch_stack
