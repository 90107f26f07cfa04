"""Run the programs of docs/errors: in the virtual world, and on real gloo ranks."""

from __future__ import annotations

import ast
import linecache
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from ringlab import World
from ringlab.world import HungRank, RankFailed, WorldError

NAME = "program.py"
"""What reports call the file of a program."""

PATIENCE = 5.0
"""Seconds after which ranks that have not returned are taken to hang."""

_ADDRESS = re.compile(r"\[[^\]]*\.(?:cc|cpp|h):\d+\] ?|\[\d[\d.]*\]:\d+")


def run(source: str, make_world: Callable[..., World]) -> list[Any]:
    """Run a program that ends with ``World(size).run(program)``, in worlds of one's own making.

    Parameters
    ----------
    source : str
    make_world : callable
        Stands for ``World`` in the program.

    Returns
    -------
    list
        What its last line returns: the results of the ranks.
    """
    linecache.cache[NAME] = len(source), None, source.splitlines(keepends=True), NAME
    tree = ast.parse(source)
    *body, last = tree.body
    if not isinstance(last, ast.Expr):
        raise ValueError(f"a program ends with World(...).run(...), not with {ast.unparse(last)}")
    kept = [node for node in body if not _imports_world(node)]
    names: dict[str, Any] = {"__name__": "__main__", "World": make_world}
    exec(compile(ast.Module(kept, []), NAME, "exec"), names)
    results: list[Any] = eval(compile(ast.Expression(last.value), NAME, "eval"), names)
    return results


def _imports_world(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "ringlab"


def world_report(source: str) -> str:
    """What the virtual world says about a program that is wrong.

    Raises
    ------
    ValueError
        If it finds nothing wrong.
    """
    try:
        results = run(source, World)
    except WorldError as error:
        return f"{type(error).__name__}: {error}"
    raise ValueError(f"the virtual world found nothing wrong, and returned {results}")


def gloo_outcome(source: str, patience: float = PATIENCE) -> str:
    """What becomes of a program on gloo: that it hangs, how it fails, or what it returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ringlab, about what gloo leaves behind
        try:
            results = run(source, lambda size, **_: _GlooWorld(size, patience))
        except HungRank as error:
            return f"hangs: {str(error).partition(' after ')[0]}"
        except RankFailed as error:
            return f"fails: {_ADDRESS.sub('', error.summary)}"
    return "\n".join(f"rank {rank} returns {result}" for rank, result in enumerate(results))


class _GlooWorld:
    """Real ranks for one call, which have met before its deadline begins."""

    def __init__(self, size: int, patience: float) -> None:
        self.size, self.patience = size, patience

    def run(self, program: Callable[..., Any], *args: Any) -> list[Any]:
        with World(self.size, backend="gloo", threads=1) as world:
            world.run(dist.barrier)
            return world.run(program, *args, timeout=self.patience)
