"""A number with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A published or measured number.

    Parameters
    ----------
    value : float
        In SI units: FLOP/s, bytes, bytes/s or seconds; a plain number for a factor.
    source : str
        Document, or how it was measured.
    date : str
        Of the source: year and month where known.
    """

    value: float
    source: str
    date: str

    def times(self, factor: float) -> Figure:
        """Scale the number; the source stays."""
        return Figure(self.value * factor, self.source, self.date)
