"""Numbers as a person reads them: bytes, seconds, shares."""

from __future__ import annotations


def bytes_text(count: float) -> str:
    """A number of bytes for a person, in binary units: ``1536`` is ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.4g} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def seconds_text(seconds: float) -> str:
    """A duration for a person: ``0.0015`` is ``1.5 ms``."""
    scale, unit = seconds_unit(seconds)
    return f"{seconds / scale:.3g} {unit}"


def seconds_unit(seconds: float) -> tuple[float, str]:
    """The unit in which a duration has one to three digits before the point, in seconds."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(seconds) >= scale * 0.9995:
            return scale, unit
    return 1e-9, "ns"


def bytes_unit(count: float) -> tuple[float, str]:
    """The binary unit in which a number of bytes is at least one."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(count) >= 1024**power:
            return float(1024**power), unit
    return 1.0, "B"


def share_text(part: float, whole: float) -> str:
    """A share as a percentage: ``1, 3`` is ``33 %``, and ``1, 30`` is ``3.3 %``."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.0f} %" if abs(percent) >= 9.95 else f"{percent:.2g} %"
