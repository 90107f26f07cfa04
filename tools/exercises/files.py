"""Where the notebooks are, and how they are read and written."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
SOLUTIONS = ROOT / "solutions"
EXERCISES = ROOT / "exercises"
STUBS = ROOT / "ringlab" / "grade" / "stubs"


def solutions() -> list[Path]:
    """The solution notebooks, in the order of the lessons."""
    return sorted(SOLUTIONS.glob("[0-9][0-9]_*.ipynb"))


def lesson_of(path: Path) -> str:
    """The two digits of a notebook's name."""
    return path.name[:2]


def read(path: Path) -> NotebookNode:
    """Read a notebook."""
    return nbformat.read(path, as_version=4)


def text_of(notebook: NotebookNode) -> str:
    """The notebook as the text of a file, the same each time."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def write_if_new(path: Path, text: str) -> bool:
    """Write a file unless it holds this text already; say whether it was written."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True
