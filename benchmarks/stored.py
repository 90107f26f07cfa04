"""Results as files: what a benchmark found, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DIGITS = 4  # significant ones of a stored number

Data = dict[str, Any]
"""``{"machine": {...}, "rows": [...]}`` and what else a benchmark tells."""


def path_of(name: str) -> Path:
    """Where the results of a benchmark are stored."""
    return Path(__file__).parent / "results" / f"{name}.json"


def write(data: Data, path: Path) -> None:
    """Write it, with numbers rounded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded(data), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Data:
    """Read it back."""
    found: Data = json.loads(path.read_text("utf-8"))
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(x) for x in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
