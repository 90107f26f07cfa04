"""Sets of moments as sorted intervals: how much of one lies under another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]
"""Start and end, in any unit."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Join intervals that touch or overlap, in order of time; empty ones vanish."""
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def length(intervals: Iterable[Interval]) -> float:
    """Add up their lengths, what they share counted once."""
    return sum(end - start for start, end in union(intervals))


def common(one: Sequence[Interval], other: Sequence[Interval]) -> float:
    """How long both go on at once."""
    return length(one) + length(other) - length([*one, *other])
