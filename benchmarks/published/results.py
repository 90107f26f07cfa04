"""Predictions of all rows as a file, so that the page can be written without pricing again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.published.predict import Prediction, predict
from benchmarks.published.rows import Row
from benchmarks.published.score import Result

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "published.json"
FACTORS = ("published.py", "benchmarks.py", "chips.py", "links.py", "transport.py")
"""Files of ringlab/machine with every factor that a price of these rows uses."""

DIGITS = 6  # of a stored prediction: enough to compare, and the same on every machine


def fingerprint() -> str:
    """SHA-256 over the files that hold the factors, in their order."""
    found = hashlib.sha256()
    for name in FACTORS:
        found.update((ROOT / "ringlab" / "machine" / name).read_bytes())
    return found.hexdigest()


def run(rows: list[Row]) -> list[Result]:
    """Price every row."""
    return [(row, predict(row)) for row in rows]


def store(results: list[Result], path: Path = STORED) -> None:
    """Write predictions by the name of their row, with the fingerprint of the factors."""
    predictions = {row.name: _rounded(prediction) for row, prediction in results}
    data = {"factors": fingerprint(), "predictions": predictions}
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def stored(rows: list[Row], path: Path = STORED) -> list[Result]:
    """Read them back for some rows.

    Raises
    ------
    KeyError
        If a row has none.
    """
    predictions = json.loads(path.read_text("utf-8"))["predictions"]
    return [(row, Prediction(**predictions[row.name])) for row in rows]


def _rounded(prediction: Prediction) -> dict[str, Any]:
    return {
        name: None if value is None else float(f"{value:.{DIGITS}g}")
        for name, value in asdict(prediction).items()
    }
