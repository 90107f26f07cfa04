"""Which cells an answer needs: those that define what it uses, and what they use in turn.

So an experiment that hangs, or another answer that crashes, costs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ringlab.grade.bulk.submission import Cell, tree


class Names(NamedTuple):
    """What a cell binds in the module (``*`` for a star import), and what it uses."""

    defined: frozenset[str]
    used: frozenset[str]


def needed(cells: Sequence[Cell], name: str, grade_id: str) -> list[Cell]:
    """The cells to execute for one answer, in their order.

    Parameters
    ----------
    cells : sequence of Cell
        Of one notebook.
    name : str
        What the answer must define.
    grade_id : str
        Of the cell in which it was asked for; that one is needed whatever it defines.

    Returns
    -------
    list of Cell
        Checks are never among them. If nothing defines the name: the cells that are no Python
        and mention it, so that their error can be told.
    """
    candidates = all_but_checks(cells)
    names = {cell.number: found for cell in candidates if (found := _names(cell.text)) is not None}
    chosen = {cell.number for cell in candidates if cell.grade_id == grade_id} & names.keys()
    asked = {name}.union(*(names[number].used for number in chosen))
    wanted = sorted(asked)
    while wanted:
        word = wanted.pop()
        for number, (defined, used) in names.items():
            if number not in chosen and (word in defined or "*" in defined):
                chosen.add(number)
                new = used - asked
                asked |= new
                wanted += sorted(new)
    if not any(name in names[number].defined for number in chosen):
        broken = [c for c in candidates if c.number not in names]
        chosen |= {c.number for c in broken if name in c.text or c.grade_id == grade_id}
    return [cell for cell in candidates if cell.number in chosen]


def without_blank(cells: Sequence[Cell], name: str, handed_out: str) -> list[Cell]:
    """The cells without those that are as handed out, where another cell defines the answer.

    A learner who asks for the empty cell again, and does not write in it, keeps the answer.
    """
    written = [cell for cell in cells if cell.text.strip() != handed_out.strip()]
    known = (_names(cell.text) for cell in all_but_checks(written))
    return written if any(names and name in names.defined for names in known) else list(cells)


def all_but_checks(cells: Sequence[Cell]) -> list[Cell]:
    """All cells to execute, where the needed ones turned out to be too few."""
    return [cell for cell in cells if not cell.check]


@lru_cache(maxsize=4096)
def _names(text: str) -> Names | None:
    """What a cell defines and uses; None if it is no Python, or too deep to be read."""
    parsed = tree(text)
    if parsed is None:
        return None
    try:
        return Names(frozenset(_defined(parsed.body)), frozenset(_used(parsed)))
    except RecursionError:
        return None


def _defined(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                yield (alias.asname or alias.name).split(".")[0]
        else:
            for node in _outside_functions(statement):
                if isinstance(node, ast.Name) and (changes := _changed(node)):
                    yield changes
                elif isinstance(node, (ast.Attribute, ast.Subscript)):
                    yield _owner(node)
            for block in ("body", "orelse", "finalbody"):
                yield from _defined(getattr(statement, block, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _defined(handler.body)


def _changed(node: ast.Name) -> str:
    return "" if isinstance(node.ctx, ast.Load) else node.id


def _owner(node: ast.Attribute | ast.Subscript) -> str:
    """The name whose attribute or entry is set, as in ``Cache.append = append``; else nothing."""
    if isinstance(node.ctx, ast.Load):
        return ""
    inner: ast.expr = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) else ""


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _outside_functions(child)


def _used(parsed: ast.Module) -> Iterator[str]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
