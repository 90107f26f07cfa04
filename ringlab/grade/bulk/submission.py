"""Reading a learner's notebook, however it arrives."""

from __future__ import annotations

import ast
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LARGEST = 50 << 20
"""Bytes of a notebook: with its pictures."""
LONGEST_CELL = 2 << 20
"""Characters of a cell."""


@dataclass(frozen=True)
class Cell:
    """A code cell.

    Attributes
    ----------
    number : int
        Its place among the code cells, from 1.
    text : str
        Python, without magics.
    grade_id : str
        From nbgrader's metadata; empty if it has none.
    check : bool
        Whether it is a cell that checks an answer.
    """

    number: int
    text: str
    grade_id: str = ""
    check: bool = False

    @property
    def title(self) -> str:
        """What to call it in reports."""
        return f"cell {self.number}"


@dataclass(frozen=True)
class Submission:
    """A notebook as it arrived.

    Attributes
    ----------
    path : Path
    cells : tuple of Cell
        Without copies of answer cells.
    remarks : tuple of str
        What was mended or left out, for the learner.
    """

    path: Path
    cells: tuple[Cell, ...] = ()
    remarks: tuple[str, ...] = field(default=())


def read(path: Path) -> Submission:
    """Read a notebook of any format since 3; what cannot be read is a remark, never an error.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Submission
    """
    remarks: list[str] = []
    try:
        found = _code_cells(_parsed(path, remarks))
    except (OSError, ValueError, RecursionError) as error:
        return Submission(path, (), (f"{path.name} could not be read: {error}",))
    cells = [
        Cell(number, _python(number, text, remarks), grade_id, check)
        for number, (text, grade_id, check) in enumerate(found, 1)
    ]
    if not cells:
        remarks.append(f"{path.name} holds no code cells.")
    return Submission(path, _without_copies(cells, remarks), tuple(remarks))


def _parsed(path: Path, remarks: list[str]) -> Any:
    size = path.stat().st_size
    if not size:
        raise ValueError("the file is empty.")
    if size > LARGEST:
        raise ValueError(f"the file has {size >> 20} MiB; at most {LARGEST >> 20} are read.")
    data = path.read_bytes()
    if b"\0" in data:
        remarks.append("NUL bytes were left out.")
    text = data.replace(b"\0", b"").decode("utf-8-sig", errors="replace")
    return json.loads(text)


def _code_cells(notebook: Any) -> list[tuple[str, str, bool]]:
    """Text, grade_id and whether it checks, of each code cell that looks like one."""
    if not isinstance(notebook, dict):
        raise ValueError("it is no notebook.")
    sheets = [notebook, *_items(notebook.get("worksheets"))]  # worksheets: format 3
    found = []
    for cell in (cell for sheet in sheets for cell in _items(_get(sheet, "cells"))):
        if _get(cell, "cell_type") != "code":
            continue
        source = _get(cell, "source") or _get(cell, "input") or ""
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        metadata = _get(_get(cell, "metadata"), "nbgrader")
        check = _get(metadata, "grade") is True and _get(metadata, "solution") is not True
        found.append((text, str(_get(metadata, "grade_id") or ""), check))
    return found


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _python(number: int, text: str, remarks: list[str]) -> str:
    """The cell with line ends of one kind and without NULs; magics become calls of nothing."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    if tree(text) is not None:
        return text
    if len(text) > LONGEST_CELL:
        remarks.append(f"cell {number} was left out: it has {len(text):,} characters.")
        return ""
    try:
        from IPython.core.inputtransformer2 import TransformerManager

        plain = str(TransformerManager().transform_cell(text))  # type: ignore[no-untyped-call]
    except Exception:  # whatever the transformer makes of a learner's text
        return text
    if tree(plain) is not None:
        remarks.append(f"cell {number}: commands of IPython were left out.")
        return plain
    return text


def tree(text: str) -> ast.Module | None:
    """A text as Python reads it; None if it is no Python, or longer than anybody writes."""
    if len(text) > LONGEST_CELL:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a learner's text: on escapes, for example
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _without_copies(cells: list[Cell], remarks: list[str]) -> tuple[Cell, ...]:
    """The cells, but of several answer cells of one exercise only the first."""
    seen: set[str] = set()
    kept = []
    for cell in cells:
        if cell.grade_id and not cell.check:
            if cell.grade_id in seen:
                remarks.append(
                    f"{cell.title} is a copy of the answer cell {cell.grade_id!r}; the first "
                    "one was graded."
                )
                continue
            seen.add(cell.grade_id)
        kept.append(cell)
    return tuple(kept)
