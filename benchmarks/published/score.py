"""How many rows lie within 15 %, and whose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.published.predict import Prediction
from benchmarks.published.rows import Row

WITHIN = 0.15

Result = tuple[Row, Prediction]


@dataclass(frozen=True)
class Score:
    """Rows that count, and how many of them are met within 15 %.

    Attributes
    ----------
    rows : int
    variant, ringlab, bound : int
        By the published programs, by ringlab's own, and by the bound of the layout alone.
    """

    rows: int
    variant: int
    ringlab: int
    bound: int


def error(predicted: float | None, published: float) -> float | None:
    """Relative error of a prediction; None without one."""
    return None if predicted is None else predicted / published - 1


def met(predicted: float | None, published: float) -> bool:
    """Whether a prediction is within 15 %."""
    found = error(predicted, published)
    return found is not None and abs(found) <= WITHIN


def score(results: Iterable[Result]) -> Score:
    """Count the rows that may count.

    Raises
    ------
    ValueError
        If a row counts that served to calibrate.
    """
    counted = [(row, prediction) for row, prediction in results if row.scored]
    for row, _ in counted:
        if row.calibrates:
            raise ValueError(f"{row.name} served to calibrate, so it cannot count.")
    return Score(
        len(counted),
        *(
            sum(met(getattr(prediction, name), row.published) for row, prediction in counted)
            for name in ("variant", "ringlab", "bound")
        ),
    )
