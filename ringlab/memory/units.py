"""Bytes in words, so that 1 kB (1000 bytes) and 1 KiB (1024 bytes) are never confused.

Amounts are plain integers everywhere; a unit is a number to multiply by: ``80 * GB``.
"""

from __future__ import annotations

import re
from fractions import Fraction

KB, MB, GB, TB = 1000, 1000**2, 1000**3, 1000**4
KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4

_DECIMAL = {"B": 1, "kB": KB, "MB": MB, "GB": GB, "TB": TB}
_BINARY = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def binary(amount: int) -> str:
    """Write bytes in units of powers of 1024, to two decimals: ``320 KiB``.

    Parameters
    ----------
    amount : int
        Bytes, 0 or more.

    Returns
    -------
    str
        Halves are rounded up; zeros at the end are left out.

    Raises
    ------
    ValueError
        If the amount is negative.
    """
    return _written(amount, _BINARY)


def decimal(amount: int) -> str:
    """Write bytes in units of powers of 1000, to two decimals: ``327.68 kB``.

    Parameters, result and errors are those of `binary`.
    """
    return _written(amount, _DECIMAL)


def both(amount: int) -> str:
    """Write bytes in both kinds of unit: ``320 KiB (327.68 kB)``; below 1000 once, ``12 B``."""
    if amount < KB:
        return binary(amount)
    return f"{binary(amount)} ({decimal(amount)})"


def parse(text: str) -> int:
    """Read an amount such as ``80 GB``, ``320 KiB`` or ``1.5 GiB``.

    Parameters
    ----------
    text : str
        A number and a unit: B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers
        of 1024).

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ValueError
        If it is no such amount, or no whole number of bytes. ``KB`` is refused: some write it
        for 1000 bytes and some for 1024.
    """
    match = _AMOUNT.fullmatch(text)
    units = _DECIMAL | _BINARY
    if match is None or match[2] not in units:
        hint = " KB can mean 1000 or 1024 bytes: write kB or KiB." if text.endswith("KB") else ""
        raise ValueError(
            f"{text!r} is no amount of memory; write a number and one of {', '.join(units)}.{hint}"
        )
    amount = Fraction(match[1]) * units[match[2]]
    if amount.denominator != 1:
        raise ValueError(f"{text!r} is {float(amount)} bytes; give a whole number of bytes.")
    return int(amount)


def _written(amount: int, units: dict[str, int]) -> str:
    if amount < 0:
        raise ValueError(f"an amount of memory is 0 bytes or more; got {amount}.")
    names = list(units)
    index = max(i for i, name in enumerate(names) if amount >= units[name] or i == 0)
    hundredths = _hundredths(amount, units[names[index]])
    larger = names[index + 1] if index + 1 < len(names) else None
    if larger is not None and hundredths * units[names[index]] >= 100 * units[larger]:
        index, hundredths = index + 1, 100  # 1023.999 KiB is written as 1 MiB
    whole, part = divmod(hundredths, 100)
    digits = f"{whole}.{part:02}".rstrip("0").rstrip(".")
    return f"{digits} {names[index]}"


def _hundredths(amount: int, unit: int) -> int:
    return (200 * amount + unit) // (2 * unit)
