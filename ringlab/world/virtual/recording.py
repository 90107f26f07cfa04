"""What a run leaves behind: messages, waits, and the operators that each rank computed."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ringlab.operators.sizes import dtype_name
from ringlab.timeline.log import NONE, EventLog, What
from ringlab.timeline.regions import labels_of_thread
from ringlab.world.source import Site
from ringlab.world.virtual.calls import Computed
from ringlab.world.virtual.operations import Operation


class Recording:
    """The events of a run, in the order in which they began.

    Parameters
    ----------
    size : int
        Number of ranks.

    Attributes
    ----------
    events : EventLog
    steps : list of int
        For each rank the launches it has waited for; a batch counts once each of its operations
        has been waited for.
    """

    def __init__(self, size: int) -> None:
        self.events = EventLog()
        self.steps = [0] * size
        self._labels: list[list[str]] = [[] for _ in range(size)]
        self._numbers: dict[Any, int] = {}
        self._from_anybody: set[Operation] = set()

    def begins(self, rank: int) -> None:
        """Take note of the calling thread, which is to be a rank."""
        self._labels[rank] = labels_of_thread()

    def posted(self, op: Operation, tensor: Tensor | None, sent: int, received: int) -> None:
        """Note that a rank has posted a message or its part in a collective."""
        shape, dtype = (None, None) if tensor is None else (tensor.shape, tensor.dtype)
        labels = self._labels[op.rank]
        label = labels[-1] if labels else ""
        key = op.kind, op.name, op.group, op.site, sent, received, shape, dtype, label
        number = self._numbers.get(key)
        if number is None:
            what = What(op.kind, op.name, op.group.ranks, sent, received, tuple(shape or ()),
                        "" if dtype is None else dtype_name(dtype), op.site.place, label,
                        None)  # fmt: skip
            number = self._numbers[key] = self.events.describe(what)
        op.event = len(self.events)
        peer = op.peer
        if peer is None:
            peer = NONE
            if op.kind == "recv":
                self._from_anybody.add(op)
        self.events.add(number, op.rank, op.launch.number, peer, self.steps[op.rank])

    def matched(self, op: Operation) -> None:
        """Note the sender of a receive from any source."""
        if op in self._from_anybody and op.peer is not None:
            self._from_anybody.remove(op)
            self.events.set_peer(op.event, op.peer)

    def waits(self, op: Operation, site: Site) -> None:
        """Note that a rank begins to wait for an operation."""
        if op.event < 0:
            return
        labels = self._labels[op.rank]
        label = labels[-1] if labels else ""
        key = op.name, op.group, site, label
        number = self._numbers.get(key)
        if number is None:
            what = What("wait", op.name, op.group.ranks, 0, 0, (), "", site.place, label, None)
            number = self._numbers[key] = self.events.describe(what)
        peer = NONE if op.peer is None else op.peer
        self.events.add(number, op.rank, op.launch.number, peer, self.steps[op.rank])

    def waited(self, op: Operation) -> None:
        """Note that a rank has waited for an operation, for the first time."""
        launch = op.launch
        launch.waited += 1
        if launch.waited == launch.size and op.event >= 0:
            self.steps[op.rank] += 1

    def computed(self, rank: int, call: Computed, site: Site) -> None:
        """Note an operator that a rank has computed."""
        labels = self._labels[rank]
        label = labels[-1] if labels else ""
        key = call, site, label
        number = self._numbers.get(key)
        if number is None:
            what = What("compute", call.name, (), 0, 0, call.shape, call.dtype, site.place,
                        label, call.work)  # fmt: skip
            number = self._numbers[key] = self.events.describe(what)
        self.events.add(number, rank, -1, NONE, self.steps[rank])
