"""Times and shares in words."""

from __future__ import annotations

from ringlab.timeline import LostTime


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            value = seconds / size
            digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def where_time_goes(lost: LostTime) -> str:
    """Shares of the time of all ranks, those of 0.5 % and more, the largest first."""
    parts = {
        "attention": lost.useful,
        "imbalance": lost.imbalance,
        "communication": lost.communication,
        "merge": lost.merge,
        "rest": lost.rest,
    }
    total = sum(parts.values())
    if not total:
        return "nothing to do"
    shares = {name: part / total for name, part in parts.items() if part >= 0.005 * total}
    return ", ".join(
        f"{name} {share:.0%}" for name, share in sorted(shares.items(), key=lambda x: -x[1])
    )
