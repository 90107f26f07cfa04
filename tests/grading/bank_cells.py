"""Answers of the bank as cells that stand by themselves, as a learner would hand them in."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from inspect import getsource

from ringlab.grade.registry import exercise
from tests.exercises.collection import Entry

BANK = "tests.exercises.bank."


@cache
def as_cell(entry: Entry) -> str:
    """The text of an answer, with all that it uses of the bank; it defines one more name.

    The bank's answers share helpers between modules, and different exercises use one name for
    different helpers. So all of it stands inside a function, which returns the answer.
    """
    taken: dict[str, str] = {}
    body = [*_closure(entry.answer.__module__, {entry.answer.__name__}, taken)]
    body.append(ast.parse(f"return {entry.answer.__name__}").body[0])
    maker = ast.parse(f"def written_{entry.exercise}(): pass").body[0]
    maker.body = body
    text = ast.unparse(ast.fix_missing_locations(maker))
    return f"{text}\n\n{exercise(entry.exercise).answer} = written_{entry.exercise}()\n"


def _closure(module: str, wanted: set[str], taken: dict[str, str]) -> Iterator[ast.stmt]:
    """The statements of a module that some names need, after those of the modules it imports.

    `taken` holds, by name, in which module it is bound; two of one name cannot stand together.
    """
    tree = _tree(module)
    found: list[ast.stmt] = []
    elsewhere: dict[str, set[str]] = {}
    pending = set(wanted)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        seen.add(name)
        for statement in tree.body:
            if name not in _bound(statement) or statement in found:
                continue
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(BANK):
                alias = next(a for a in statement.names if (a.asname or a.name) == name)
                elsewhere.setdefault(statement.module, set()).add(alias.name)
                if alias.asname:
                    found.append(ast.parse(f"{alias.asname} = {alias.name}").body[0])
                continue
            found.append(statement)
            pending |= _used(statement) - seen
    for other, names in elsewhere.items():
        yield from _closure(other, names, taken)
    order = {id(statement): at for at, statement in enumerate(tree.body)}
    for statement in sorted(found, key=lambda one: order.get(id(one), -1)):
        imported = isinstance(statement, (ast.Import, ast.ImportFrom))
        for name in () if imported else _bound(statement):
            assert taken.setdefault(name, module) == module, f"{name}: {taken[name]} and {module}"
        yield statement


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(getsource(sys.modules[module]))


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    return set(_names(ast.walk(statement), ast.Store))


def _used(statement: ast.stmt) -> set[str]:
    return set(_names(ast.walk(statement), ast.Load))


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> Iterator[str]:
    return (n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, context))
