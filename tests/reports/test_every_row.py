"""Faults that users of other libraries reported: each is a test here, or cannot arise yet.

The rows are those of a survey of public reports, by letter and number: A merging, B backward,
C lengths and empty ranks, F hangs and order, G groups, H buffers. A test names the rows that
it covers, ``test_report_f1_f3_...``.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]

ROWS = (
    *(f"a{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 16, 18)),
    *(f"b{n}" for n in (1, 2, 4, 7, 8, 9, 11, 12, 13)),
    *(f"c{n}" for n in (2, 3, 4, 6, 7, 9, 10, 13)),
    *(f"f{n}" for n in (1, 2, 3, 4, 6, 7, 8, 11, 12, 14, 15, 16)),
    *(f"g{n}" for n in (1, 2, 4, 5, 7)),
    *(f"h{n}" for n in (1, 2, 3, 5)),
)

CANNOT_ARISE = {
    "g5": "the order of sharding and the all-to-all of heads: no method moves heads",
}


def covered() -> set[str]:
    """The rows that are named by a test function of this suite."""
    names = (
        node.name
        for file in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_report_")
    )
    rows: set[str] = set()
    for name in names:
        for word in name.removeprefix("test_report_").split("_"):
            if not re.fullmatch(r"[a-j]\d+", word):
                break
            rows.add(word)
    return rows


def test_every_row_is_a_test_or_has_a_reason() -> None:
    assert set(ROWS) - covered() - set(CANNOT_ARISE) == set()


def test_no_reason_stands_beside_a_test() -> None:
    assert covered() & set(CANNOT_ARISE) == set()
