"""The clock of a rank's events: the host's, or that of its GPU.

All ranks of a machine share one: a GPU's events are placed on the host's monotonic clock,
which on Linux and macOS is the same in every process.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """Marks moments now, and says when they were after the run."""

    def begin(self) -> None:
        """Start afresh, for a new run."""
        ...

    def mark(self) -> Any:
        """Mark this moment; costs no more than the program can bear at every call."""
        ...

    def seconds(self, mark: Any) -> float | None:
        """When it was, in seconds of the host's monotonic clock; None if not reached yet."""
        ...


class HostClock:
    """What is computed on the host happens when the host is there."""

    def begin(self) -> None:
        """Nothing to prepare."""

    def mark(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def seconds(self, mark: float) -> float:
        """The mark itself."""
        return mark


class GpuClock:
    """What is computed on a GPU happens when its current stream gets there.

    A mark is a CUDA event on the current stream. The host runs ahead, so times are read when
    the run is over.
    """

    def __init__(self) -> None:
        self._host = 0.0
        self._anchor: Any = None
        self._last: Any = None

    def begin(self) -> None:
        """Mark one moment on both clocks."""
        torch.cuda.synchronize()
        self._anchor = self._last = self._event()
        self._anchor.synchronize()
        self._host = time.monotonic()

    def mark(self) -> Any:
        """An event that the stream passes; inside a graph's capture the last one before it."""
        if not torch.cuda.is_current_stream_capturing():
            self._last = self._event()
        return self._last

    def seconds(self, mark: Any) -> float | None:
        """When the stream passed it; None also if the GPU has failed and tells nothing."""
        try:
            if not mark.query():
                return None
            return self._host + float(self._anchor.elapsed_time(mark)) / 1e3
        except RuntimeError:
            return None

    def _event(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
