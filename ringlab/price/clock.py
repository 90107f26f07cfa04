"""Time in whole picoseconds, so that sums are exact and do not depend on their order."""

from __future__ import annotations

import math

PER_SECOND = 10**12


def ticks(seconds: float) -> int:
    """Picoseconds, rounded up: nothing gets faster by rounding."""
    return math.ceil(seconds * PER_SECOND)


def seconds(time: int) -> float:
    """Seconds of some picoseconds."""
    return time / PER_SECOND
