"""A straight line through measured times."""

from __future__ import annotations

from collections.abc import Mapping


def line(times: Mapping[int, float]) -> tuple[float, float]:
    """Fit ``time = latency + size / rate``, every time weighing by its relative error.

    Parameters
    ----------
    times : mapping of int to float
        From bytes to seconds; at least two sizes.

    Returns
    -------
    latency : float
        Seconds, not below 0.
    rate : float
        Bytes a second.

    Raises
    ------
    ValueError
        With fewer than two sizes, or if larger messages took no longer.
    """
    if len(times) < 2:
        raise ValueError(f"a line needs two sizes; measured are {list(times)}.")
    rows = [(1 / t, size / t) for size, t in times.items()]
    aa, ab, bb = (sum(x * y for x, y in pairs) for pairs in (
        [(a, a) for a, _ in rows], rows, [(b, b) for _, b in rows]))  # fmt: skip
    a, b = sum(a for a, _ in rows), sum(b for _, b in rows)
    determinant = aa * bb - ab * ab
    latency, slope = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    if latency < 0:
        latency, slope = 0.0, b / bb
    if slope <= 0:
        raise ValueError(f"larger messages took no longer: {dict(times)}.")
    return latency, 1 / slope
