"""What a run leaves behind: messages, waits, and the operators that each rank computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ringlab import operators
from ringlab.operators.sizes import dtype_name, tensors
from ringlab.timeline import Event, Work
from ringlab.timeline.regions import current_label
from ringlab.world.source import Site, current_site
from ringlab.world.virtual.operations import Operation


class _Computed(NamedTuple):
    """What calls of an operator with the same shapes have in common."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    work: Work | None


class Recording:
    """The events of a run, in the order in which they began.

    Parameters
    ----------
    size : int
        Number of ranks.

    Attributes
    ----------
    events : list of Event
    steps : list of int
        For each rank the launches it has waited for; a batch counts once each of its operations
        has been waited for.
    """

    def __init__(self, size: int) -> None:
        self.events: list[Event] = []
        self.steps = [0] * size
        self._known: dict[Any, _Computed] = {}

    def posted(self, op: Operation, tensor: Tensor | None, sent: int, received: int) -> None:
        """Note that a rank has posted a message or its part in a collective."""
        shape = () if tensor is None else tuple(tensor.shape)
        dtype = "" if tensor is None else dtype_name(tensor.dtype)
        op.event = len(self.events)
        self.events.append(
            Event(op.rank, op.kind, op.name, op.launch.number, op.group.ranks, op.peer, sent,
                  received, shape, dtype, op.site.place, self.steps[op.rank], current_label())
        )  # fmt: skip

    def matched(self, op: Operation) -> None:
        """Note the sender of a receive from any source."""
        if op.kind == "recv" and op.event >= 0:
            event = self.events[op.event]
            if event.peer is None:
                self.events[op.event] = event._replace(peer=op.peer)

    def waits(self, op: Operation, site: Site) -> None:
        """Note that a rank begins to wait for an operation."""
        if op.event < 0:
            return
        self.events.append(
            Event(op.rank, "wait", op.name, op.launch.number, op.group.ranks, op.peer, 0, 0, (),
                  "", site.place, self.steps[op.rank], current_label())
        )  # fmt: skip

    def waited(self, op: Operation) -> None:
        """Note that a rank has waited for an operation, for the first time."""
        launch = op.launch
        launch.waited += 1
        if launch.waited == launch.size and op.event >= 0:
            self.steps[op.rank] += 1

    def computed(
        self, rank: int, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> Work | None:
        """Note an operator that a rank has computed, unless it is free, as a view is.

        Returns
        -------
        Work or None
            None where no formula knows it.
        """
        key = func, _signature(args), _signature(kwargs.values())
        try:
            known = self._known[key]
        except KeyError:
            known = _describe(func, args, kwargs, result)
            if not _depends_on_data(func, args):
                self._known[key] = known
        except TypeError:  # an argument that has no hash
            known = _describe(func, args, kwargs, result)
        name, shape, dtype, work = known
        if work is None or work.kind != "free":
            self.events.append(
                Event(rank, "compute", name, -1, (), None, 0, 0, shape, dtype,
                      current_site().place, self.steps[rank], current_label(), None, None, work)
            )  # fmt: skip
        return work


def _signature(values: Iterable[Any]) -> tuple[Any, ...]:
    """What the work of an operator follows from: shapes, dtypes and everything but tensors."""
    return tuple(
        [
            (value.shape, value.dtype)
            if isinstance(value, Tensor)
            else _signature(value)
            if isinstance(value, (list, tuple))
            else value
            for value in values
        ]
    )


def _depends_on_data(func: Any, args: Sequence[Any]) -> bool:
    """Whether two calls with the same shapes may differ in work, as by what a mask allows."""
    if torch.Tag.dynamic_output_shape in getattr(func, "tags", ()):
        return True
    return any(tensor.dtype == torch.bool and not tensor.is_meta for tensor in tensors(args))


def _describe(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> _Computed:
    work = operators.work(func, args, kwargs, result)
    schema = getattr(func, "_schema", None)  # a higher-order operator has none
    name = func.name() if schema is None else schema.name
    sample = next(tensors((args, list(kwargs.values()), result)), None)
    if sample is None:
        return _Computed(name, (), "", work)
    return _Computed(name, tuple(sample.shape), dtype_name(sample.dtype), work)
