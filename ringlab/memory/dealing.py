"""What can be dealt out to ranks in equal parts, and what cannot."""

from __future__ import annotations


def check_divides(what: str, count: int, ranks: int) -> None:
    """Refuse a number of ranks that does not divide a count."""
    if count % ranks:
        fit = [n for n in range(1, count + 1) if count % n == 0]
        raise ValueError(
            f"{count} {what} cannot be dealt to tp={ranks} ranks ({count} % {ranks} = "
            f"{count % ranks}); tp can be {listed(fit)}."
        )


def listed(numbers: list[int]) -> str:
    """Write numbers in a row, the first twelve."""
    shown = ", ".join(map(str, numbers[:12]))
    return shown if len(numbers) <= 12 else f"{shown}, ..."
