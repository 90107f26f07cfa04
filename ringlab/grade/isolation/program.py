"""Executing a learner's cells: statement by statement, so that one fault costs one statement."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple


class Source(NamedTuple):
    """A cell to execute.

    Attributes
    ----------
    title : str
        As it shall stand in tracebacks and reports: ``"cell 7"``.
    text : str
        Python.
    """

    title: str
    text: str


class _FrontEnd:
    """Stands for IPython: whatever a cell asks of it, it does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def execute(cells: Sequence[Source]) -> tuple[dict[str, Any], list[str]]:
    """Execute cells as the main module.

    Parameters
    ----------
    cells : sequence of Source

    Returns
    -------
    dict
        The names that they define.
    list of str
        What went wrong, as in ``"cell 2, line 1: ModuleNotFoundError: No module named 'x'"``.
    """
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    front_end = _FrontEnd()
    vars(builtins)["get_ipython"] = lambda: front_end
    vars(builtins)["display"] = lambda *_, **__: None
    problems: list[str] = []
    for cell in cells:
        linecache.cache[cell.title] = (
            len(cell.text), None, cell.text.splitlines(keepends=True), cell.title
        )  # fmt: skip
        try:
            statements = ast.parse(cell.text, cell.title).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            problems.append(f"{cell.title}: {type(error).__name__}: {error}")
            continue
        for statement in statements:
            try:
                code = compile(ast.Module([statement], []), cell.title, "exec", dont_inherit=True)
                exec(code, vars(module))
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                where = f"{cell.title}, line {statement.lineno}"
                problems.append(f"{where}: {type(error).__name__}: {error}")
    return vars(module), problems
