"""Spans of time: unions, lengths and differences of intervals ``(start, end)``."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[float, float]
"""Start and end in seconds."""


def union(spans: Iterable[Span]) -> list[Span]:
    """The same instants as disjoint spans in order, without empty ones."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def length(spans: Iterable[Span]) -> float:
    """Seconds that spans last together; instants that two share count once."""
    return sum(end - start for start, end in union(spans))


def subtract(spans: Iterable[Span], taken: Iterable[Span]) -> list[Span]:
    """The instants of `spans` that are in none of `taken`, as disjoint spans in order."""
    left: list[Span] = []
    holes = union(taken)
    first = 0
    for start, end in union(spans):
        while first < len(holes) and holes[first][1] <= start:
            first += 1
        for hole in holes[first:]:
            if hole[0] >= end:
                break
            if start < hole[0]:
                left.append((start, hole[0]))
            start = max(start, hole[1])
        if start < end:
            left.append((start, end))
    return left
