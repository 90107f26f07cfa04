"""Notebooks as learners hand them in, made of the text of their cells."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringlab.grade.hidden import hidden_cases
from ringlab.grade.nbgrader import answer_cell, cells, check_cell
from ringlab.grade.registry import exercise

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "solutions"
RING = SOLUTIONS / "03_the_ring.ipynb"
HIDDEN = hidden_cases(RING)

Cell = dict[str, Any]


def code(text: str, grade_id: str = "", *, check: bool = False) -> Cell:
    """A code cell; with a grade_id an answer's, or the one that checks it."""
    metadata: dict[str, Any] = {}
    if grade_id:
        metadata["nbgrader"] = check_cell(grade_id, 1) if check else answer_cell(grade_id)
    return {
        "cell_type": "code", "metadata": metadata, "source": text,
        "outputs": [], "execution_count": None,
    }  # fmt: skip


def notebook(made: Sequence[Cell], **other: Any) -> dict[str, Any]:
    """A notebook of format 4."""
    return {"cells": list(made), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **other}


def answers(texts: dict[str, str], *helpers: str) -> dict[str, Any]:
    """A notebook with answers by name of the exercise, after cells of the learner's own."""
    made = [code(text) for text in ("import torch\nimport torch.distributed as dist", *helpers)]
    for name, text in texts.items():
        made += [code(text, name), code(f"check({name!r}, {name})", name, check=True)]
    return notebook(made)


def hand_in(folder: Path, student: str, made: dict[str, Any] | bytes) -> Path:
    """Write a notebook, or the bytes of what claims to be one, into a student's folder."""
    path = folder / student / "03_the_ring.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
    return path


def solution(name: str) -> str:
    """The text of the solution of an exercise."""
    lesson = exercise(name).lesson
    (path,) = SOLUTIONS.glob(f"{lesson}_*.ipynb")
    return next(cell.source for cell in cells(path) if cell.grade_id == name)
