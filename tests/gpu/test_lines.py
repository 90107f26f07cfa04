"""Every call of CUDA in the library is reached by a test on a CPU, or named as one that is not."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("lines.toml").read_text("utf-8"))
CUDA = ("torch.cuda.", "torch.backends.cudnn.")
FEW = 16


def calls_in(source: str) -> list[str]:
    """What of CUDA some Python calls."""
    found = [ast.unparse(n.func) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    return [name for name in found if name.startswith(CUDA)]


def test_the_table_has_every_call_of_cuda() -> None:
    there = {
        (str(path.relative_to(ROOT)), call)
        for path in (ROOT / "ringlab").rglob("*.py")
        for call in calls_in(path.read_text(encoding="utf-8"))
    }
    reached = {(row["file"], call) for row in TABLE["reached"] for call in row["calls"]}
    unreached = {
        (row["file"], call)
        for row in TABLE["unreached"]
        for line in row["lines"]
        for call in calls_in(line)
    }
    assert reached | unreached == there
    assert not reached & unreached


@pytest.mark.parametrize("row", TABLE["unreached"], ids=lambda row: row["file"])
def test_lines_that_only_a_gpu_reaches_stand_where_the_table_says(row: dict[str, object]) -> None:
    source = (ROOT / str(row["file"])).read_text(encoding="utf-8").splitlines()
    found = Counter(line.strip() for line in source)
    assert isinstance(row["lines"], list)
    assert {line: found[line] for line in row["lines"]} == dict.fromkeys(row["lines"], 1)
    assert row["why"]


def test_they_are_few() -> None:
    assert sum(len(row["lines"]) for row in TABLE["unreached"]) <= FEW


@pytest.mark.parametrize("row", TABLE["reached"], ids=lambda row: row["file"])
def test_a_test_that_reaches_them_exists(row: dict[str, str]) -> None:
    file, _, name = row["by"].partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
