"""Messages whose numbers are altered on their way, to see whether an answer uses them.

The virtual ranks of an answer share one process. One that hands its data on beside the messages,
through a global or by finding the others' inputs, has right results and right traffic. When what
the messages carry is altered, the results of an honest answer change, and those of that one do
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from ringlab.world.virtual import collectives, operations


class Interference:
    """Stands between sender and receiver in the virtual world of this process."""

    def __init__(self) -> None:
        self._at_each: Callable[[], None] | None = None
        self._staged = operations.stage
        for module in (operations, collectives):
            vars(module)["stage"] = self._stage

    def _stage(self, tensor: Tensor) -> Tensor | None:
        value = self._staged(tensor)
        if self._at_each is None or value is None or not value.is_floating_point():
            return value
        self._at_each()
        return value * 1.25 + 0.5

    @contextmanager
    def on(self, at_each: Callable[[], None]) -> Iterator[None]:
        """Alter what is sent in the block, and call `at_each` for each message."""
        self._at_each = at_each
        try:
            yield
        finally:
            self._at_each = None
