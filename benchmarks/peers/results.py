"""Results as a file: what a run found, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "peers.json"
DIGITS = 4  # significant ones of a stored number

Data = dict[str, Any]
"""``{"machine": {...}, "libraries": [...], "rows": [...], "abilities": [...]}``."""


def store(data: Data, path: Path = STORED) -> None:
    """Write it, with numbers rounded."""
    path.write_text(json.dumps(_rounded(data), indent=1) + "\n", encoding="utf-8")


def stored(path: Path = STORED) -> Data:
    """Read it back."""
    found: Data = json.loads(path.read_text("utf-8"))
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(x) for name, x in value.items()}
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
