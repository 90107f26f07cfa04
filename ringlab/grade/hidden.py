"""The hidden cases, which stand in the solutions and nowhere in the package."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from ringlab.grade.case import Case
from ringlab.grade.nbgrader import HIDDEN_BEGIN, HIDDEN_END, cells


def hidden_cases(path: str | os.PathLike[str]) -> dict[str, tuple[Case, ...]]:
    """Read the hidden cases of a solution notebook; none of its code is run.

    Parameters
    ----------
    path : path-like
        For example ``solutions/03_the_ring.ipynb``.

    Returns
    -------
    dict
        From the name of each exercise to its hidden cases, each marked as hidden.

    Raises
    ------
    ValueError
        If a call of ``points`` in a hidden region holds anything but literals.
    """
    found: dict[str, tuple[Case, ...]] = {}
    for cell in cells(Path(path)):
        text = "\n".join(_hidden_lines(cell.source))
        for name, entries in _calls(text):
            found[name] = tuple(Case.from_plain({**entry, "hidden": True}) for entry in entries)
    return found


def _hidden_lines(source: str) -> Iterator[str]:
    inside = False
    for line in source.splitlines():
        if HIDDEN_BEGIN in line:
            inside = True
        elif HIDDEN_END in line:
            inside = False
        elif inside:
            yield line


def _calls(text: str) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """The calls ``points(name, answer, hidden=[...])`` of a text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "points":
            hidden = [word.value for word in node.keywords if word.arg == "hidden"]
            if hidden:
                yield ast.literal_eval(node.args[0]), ast.literal_eval(hidden[0])
