"""Handles of operations: what ``isend``, ``all_reduce(async_op=True)`` and so on return."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.world.source import is_library
from ringlab.world.virtual.operations import Operation

if TYPE_CHECKING:
    from ringlab.world.virtual.run import Run


class VirtualWork(dist.Work):
    """The handle of one operation; waiting for it gives the turn away.

    Parameters
    ----------
    run : Run
    op : Operation
    buffers : sequence of Tensor
        What the program gave to be filled, or to be sent.
    """

    def __init__(self, run: Run, op: Operation, buffers: Sequence[Tensor]) -> None:
        super().__init__()
        self._run, self._op = run, op
        # weak, so that a handle that is kept does not keep the program's buffers
        self._buffers = tuple(map(weakref.ref, buffers))

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Block until the operation is done, then fill the program's buffers."""
        self._run.wait(self._op)
        return True

    def synchronize(self) -> None:
        """Same as `wait`: there is no stream to order."""
        self._run.wait(self._op)

    def block_current_stream(self) -> None:
        """Same as `wait`: there is no stream to block."""
        self._run.wait(self._op)

    def is_completed(self) -> bool:
        """Whether the operation is done; gives every other rank a turn before it says no."""
        return self._run.poll(self._op)

    def is_success(self) -> bool:
        """Whether the operation is done: one that fails ends the run."""
        return self._run.poll(self._op)

    def exception(self) -> None:
        """Nothing to give: an operation that fails ends the run."""

    def source_rank(self) -> int:
        """Group rank of the sender, for a receive."""
        peer = self._op.peer
        return -1 if peer is None else self._op.group.ranks.index(peer)

    def _source_rank(self) -> int:
        return self.source_rank()

    def result(self) -> list[Tensor]:
        """The tensors of the operation that the program still holds."""
        return [tensor for ref in self._buffers if (tensor := ref()) is not None]

    def get_future(self) -> torch.futures.Future[list[Tensor]]:
        """A future whose value is the operation's tensors.

        Notes
        -----
        Torch's own code, as DDP's, waits for a future where no other rank could take the turn,
        so it is given one that is complete: the call waits.
        """
        held = self.result()

        def compute() -> list[Tensor]:
            self.wait()
            return held

        future = VirtualFuture(compute, self.is_completed)
        if is_library(sys._getframe(1).f_code.co_filename):
            future.wait()
        return future


class VirtualFuture(torch.futures.Future[Any]):
    """A future that is computed in the rank that waits for it, when it does.

    Parameters
    ----------
    compute : callable
        Gives the value; may wait for other ranks.
    ready : callable
        Whether `compute` would return at once.
    """

    def __init__(self, compute: Callable[[], Any], ready: Callable[[], bool]) -> None:
        super().__init__()
        self._compute, self._ready = compute, ready
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether the value is there; gives every other rank a turn before it says no."""
        return super().done() or self._ready()

    def wait(self) -> Any:
        """Block until the value is there."""
        self._settle()
        return super().wait()

    def value(self) -> Any:
        """The value, which must be there."""
        if self.done():
            self._settle()
        return super().value()

    def then(self, callback: Callable[[Any], Any]) -> VirtualFuture:
        """A future whose value is ``callback(self)``, called in whichever wait comes first."""

        def compute() -> Any:
            self._settle()
            return callback(self)

        child = VirtualFuture(compute, self.done)
        self._when_done(child._settle)
        return child

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call ``callback(self)`` in the wait for this future."""
        self._when_done(lambda: callback(self))

    def _when_done(self, action: Callable[[], None]) -> None:
        if super().done():
            action()
        else:
            self._callbacks.append(action)

    def _settle(self) -> None:
        if super().done():
            return
        try:
            value = self._compute()
        except Exception as error:
            if not super().done():
                self.set_exception(error)
        else:
            if not super().done():
                self.set_result(value)
        callbacks, self._callbacks = self._callbacks, []
        for action in callbacks:
            action()
