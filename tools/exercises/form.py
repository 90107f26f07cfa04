"""The stored form of a solution notebook: nbgrader's metadata, boxes, no outputs.

The id of a cell says what it is: ``ring_forward-task`` (markdown), ``ring_forward-answer`` and
``ring_forward-check`` (code). Every other code cell belongs to the notebook and is locked.
"""

from __future__ import annotations

from copy import deepcopy

import nbformat
from nbformat import NotebookNode

from ringlab.grade.exercise import Exercise
from ringlab.grade.nbgrader import answer_cell, check_cell, locked_cell
from ringlab.grade.registry import exercise
from tools.run_notebooks import NOTEBOOK_METADATA

ROLES = ("task", "answer", "check")


def role(cell: NotebookNode) -> tuple[str, str]:
    """The exercise and the role of a cell; two empty strings for other cells."""
    name, _, part = cell.id.rpartition("-")
    return (name, part) if name and part in ROLES else ("", "")


def exercises_in(notebook: NotebookNode) -> list[str]:
    """Names of the exercises of a notebook, in order."""
    return [name for name, part in map(role, notebook.cells) if part == "task"]


def box(entry: Exercise) -> str:
    """The line below the heading of an exercise."""
    return (
        f"**Minutes** {entry.minutes} · **Difficulty** {entry.difficulty} of 5 · "
        f"**Points** {entry.points} · **Afterwards you can** {entry.objective}."
    )


def stored(notebook: NotebookNode) -> NotebookNode:
    """The notebook in its stored form.

    Raises
    ------
    ValueError
        If an exercise lacks one of its three cells, or they do not follow one another.
    """
    result = deepcopy(notebook)
    result.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    result.nbformat, result.nbformat_minor = 4, 5
    for number, name in enumerate(exercises_in(result), 1):
        _complete(result, name)
        entry = exercise(name)
        for cell in result.cells:
            if role(cell) == (name, "task"):
                cell.source = _headed(cell.source, f"## {number}. {entry.title}", box(entry))
            elif role(cell) == (name, "answer"):
                cell.metadata = nbformat.from_dict({"nbgrader": answer_cell(name)})
            elif role(cell) == (name, "check"):
                cell.metadata = nbformat.from_dict({"nbgrader": check_cell(name, entry.points)})
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if not role(cell)[0]:
                cell.metadata = nbformat.from_dict({"nbgrader": locked_cell(cell.id)})
        elif cell.cell_type == "markdown":
            cell.metadata = nbformat.from_dict({})
    return result


def _headed(source: str, heading: str, line: str) -> str:
    """A task with its heading and its box above the author's text."""
    lines = source.split("\n")
    if lines[0].startswith("## "):
        lines = lines[1:]
    text = "\n".join(lines).strip("\n")
    if text.startswith("**Minutes**"):
        text = text.partition("\n")[2].strip("\n")
    return f"{heading}\n\n{line}\n\n{text}"


def _complete(notebook: NotebookNode, name: str) -> None:
    parts = [part for owner, part in map(role, notebook.cells) if owner == name]
    if parts != list(ROLES):
        raise ValueError(f"{name} has the cells {parts}; it needs {list(ROLES)}, in this order.")
