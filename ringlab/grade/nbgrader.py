"""Notebooks in nbgrader's form: its cells, its metadata and its markers, without nbgrader."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOLUTION_BEGIN, SOLUTION_END = "BEGIN SOLUTION", "END SOLUTION"
HIDDEN_BEGIN, HIDDEN_END = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
SCHEMA = 3


@dataclass(frozen=True)
class Cell:
    """A code cell.

    Attributes
    ----------
    grade_id : str
        Empty for a cell without nbgrader's metadata.
    source : str
    metadata : dict
        What nbgrader keeps; empty likewise.
    """

    grade_id: str
    source: str
    metadata: dict[str, Any]


def cells(path: Path) -> list[Cell]:
    """The code cells of a notebook of format 4."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [_cell(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _cell(raw: dict[str, Any]) -> Cell:
    metadata = raw.get("metadata", {}).get("nbgrader", {})
    source = "".join(raw["source"])  # a string, or a list of lines
    return Cell(metadata.get("grade_id", ""), source, metadata)


def answer_cell(name: str) -> dict[str, Any]:
    """Metadata of the cell in which an exercise is answered."""
    return _metadata(name, grade=False, solution=True, locked=False)


def check_cell(name: str, points: int) -> dict[str, Any]:
    """Metadata of the cell that checks the answer."""
    return {**_metadata(f"check_{name}", grade=True, solution=False, locked=True), "points": points}


def locked_cell(name: str) -> dict[str, Any]:
    """Metadata of a cell that belongs to the notebook."""
    return _metadata(name, grade=False, solution=False, locked=True)


def _metadata(grade_id: str, *, grade: bool, solution: bool, locked: bool) -> dict[str, Any]:
    return {
        "cell_type": "code", "grade": grade, "grade_id": grade_id, "locked": locked,
        "schema_version": SCHEMA, "solution": solution, "task": False,
    }  # fmt: skip


def without_solution(source: str) -> str:
    """A cell's source with each solution replaced by the stub, as nbgrader does it.

    Raises
    ------
    ValueError
        If the markers do not pair up.
    """
    return _cut(source, SOLUTION_BEGIN, SOLUTION_END, STUB)


def without_hidden(source: str) -> str:
    """A cell's source without its hidden tests."""
    return _cut(source, HIDDEN_BEGIN, HIDDEN_END, ())


def _cut(source: str, begin: str, end: str, instead: tuple[str, ...]) -> str:
    kept: list[str] = []
    inside = False
    for line in source.split("\n"):
        if begin in line or end in line:
            if inside == (begin in line):
                raise ValueError(f"{begin} and {end} do not pair up at: {line}")
            if not inside:
                indent = re.match(r"\s*", line)
                kept += [(indent[0] if indent else "") + text for text in instead]
            inside = not inside
        elif not inside:
            kept.append(line)
    if inside:
        raise ValueError(f"{begin} is not followed by {end}.")
    return "\n".join(kept)
