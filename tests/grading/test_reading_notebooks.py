"""Notebooks are read however they arrive, and what was mended is said."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ringlab.grade.bulk import submission
from ringlab.grade.bulk.questions import job
from ringlab.grade.bulk.slicing import needed
from ringlab.grade.bulk.students import find
from ringlab.grade.bulk.submission import Submission, read
from ringlab.grade.isolation.limits import Limits
from ringlab.grade.isolation.program import execute
from ringlab.grade.notebook.session import stub
from ringlab.grade.registry import exercise
from tests.grading.hostile import RIGHT
from tests.grading.notebooks import RING, Cell, code, notebook, solution

ANSWER = f"def rotation_table(size):\n    return {RIGHT}\n"


def written(path: Path, made: Any) -> Submission:
    path.write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
    return read(path)


def run(found: Submission) -> dict[str, Any]:
    """The names that the cells for the rotation table define."""
    asked = exercise("rotation_table")
    made = job(asked, asked.cases, [found], Limits())
    assert made is not None, found
    return execute(made.cells)[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ipynb"


@pytest.fixture(autouse=True)
def _main_module_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins
    import sys

    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for name in ("get_ipython", "display"):
        monkeypatch.setitem(vars(builtins), name, lambda *_: None)


def in_format_3(cells: list[Cell]) -> dict[str, Any]:
    old = [{**cell, "input": cell.pop("source"), "language": "python"} for cell in cells]
    return {"worksheets": [{"cells": old}], "nbformat": 3, "nbformat_minor": 0, "metadata": {}}


MESSY: dict[str, Any] = {
    "format 3": in_format_3([code(ANSWER)]),
    **{f"format 4.{minor}": notebook([code(ANSWER, "rotation_table")], nbformat_minor=minor)
       for minor in range(6)},
    "no metadata": {"cells": [{"cell_type": "code", "source": ANSWER}]},
    "lines as a list": notebook([code(ANSWER) | {"source": ANSWER.splitlines(keepends=True)}]),
    "renamed cell": notebook([code(ANSWER, "rotation_table-Copy1")]),
    "deleted check": notebook([code(ANSWER, "rotation_table")]),
    "edited check": notebook([
        code(ANSWER, "rotation_table"),
        code("def rotation_table(size): return []", "check_rotation_table", check=True),
    ]),
    "copied answer": notebook([
        code(ANSWER, "rotation_table"),
        code("def rotation_table(size): return []", "rotation_table"),
    ]),
    "copied check": notebook([code(ANSWER, "rotation_table"),
                              *[code("check(1)", "check_rotation_table", check=True)] * 3]),
    "NUL bytes": json.dumps(notebook([code(ANSWER)])).encode().replace(b"size", b"si\0ze"),
    "escaped NULs": notebook([code(ANSWER.replace("size", "si\0ze"))]),
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(notebook([code(ANSWER)])).encode(),
    "carriage returns": notebook([code(ANSWER.replace("\n", "\r\n"))]),
    "old Macintosh": notebook([code(ANSWER.replace("\n", "\r"))]),
    "broken UTF-8": json.dumps(notebook([code(f"# \xe9\n{ANSWER}")]), ensure_ascii=False)
    .encode("latin-1"),
    "a line of 1 MB": notebook([code(f"text = '{'x' * 1_000_000}'\n{ANSWER}")]),
    "emoji": notebook([code(f"größe = '🎓'\n{ANSWER}")]),
    "magic": notebook([code(f"%matplotlib inline\n{ANSWER}")]),
    "cell magic": notebook([code("%%time\nx = 1"), code(f"%%time\n{ANSWER}"), code(ANSWER)]),
    "shell line": notebook([code(f"!pip install torch\nfiles = !ls\n{ANSWER}")]),
    "question mark": notebook([code(f"len?\n{ANSWER}")]),
    "syntax error elsewhere": notebook([code("def f(:"), code(ANSWER, "rotation_table")]),
    "deep expression": notebook([code("x = " + "+".join("1" * 20_000)), code(ANSWER)]),
    "deep brackets": notebook([code("(" * 5000), code("-" * 200_000 + "1"), code(ANSWER)]),
    "cells of no kind": notebook([{}, {"cell_type": "code"}, "text", None, code(ANSWER)]),
    "helper after": notebook([code(ANSWER.replace(RIGHT, "made(size)"), "rotation_table"),
                              code(f"def made(size):\n    return {RIGHT}")]),
    "star import": notebook([code("from math import *"), code(ANSWER)]),
    "names from a loop": notebook([
        code("for offset in range(1):\n    pass"),
        code(ANSWER.replace("rank - step", "rank - step + offset"), "rotation_table"),
    ]),
    "names from a with, a try and a walrus": notebook([
        code("import contextlib\nwith contextlib.nullcontext(0) as a:\n    pass\n"
             "try:\n    b = 0\nexcept ValueError:\n    b = 1\nif (c := 0) == 0:\n    d = 0"),
        code(ANSWER.replace("rank - step", "rank - step + a + b + c + d"), "rotation_table"),
    ]),
    "method added later": notebook([
        code("class Table:\n    pass"),
        code(f"def make(self, size):\n    return {RIGHT}\nTable.make = make"),
        code("def rotation_table(size):\n    return Table().make(size)", "rotation_table"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSY)
def test_an_answer_in_a_messy_notebook_is_found(path: Path, name: str) -> None:
    names = run(written(path, MESSY[name]))
    assert names["rotation_table"](2) == [[0, 1], [1, 0]]


REFUSED = {
    "empty": b"",
    "text": b"print(1)",
    "a list": b"[1, 2]",
    "a number": b"1",
    "half": json.dumps(notebook([code(ANSWER)])).encode()[:100],
    "nested": b"[" * 100_000,
    "picture": bytes(range(256)) * 10,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_notebook_is_a_remark(path: Path, name: str) -> None:
    found = written(path, REFUSED[name])
    assert found.cells == ()
    assert "could not be read" in found.remarks[0]


def test_an_enormous_file_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(60 << 20)
    assert "60 MiB; at most 50 are read" in read(path).remarks[0]


def test_an_enormous_cell_is_left_out(path: Path) -> None:
    found = written(path, notebook([code("x" * (submission.LONGEST_CELL + 1)), code(ANSWER)]))
    assert "cell 1 was left out" in found.remarks[0]
    assert run(found)["rotation_table"](1) == [[0]]


def test_a_file_that_cannot_be_opened_is_a_remark(tmp_path: Path) -> None:
    assert "could not be read" in read(tmp_path / "away.ipynb").remarks[0]


def test_a_copied_answer_is_named(path: Path) -> None:
    assert (
        "copy of the answer cell 'rotation_table'"
        in written(path, MESSY["copied answer"]).remarks[0]
    )


def test_commands_of_ipython_are_named(path: Path) -> None:
    assert "commands of IPython were left out" in written(path, MESSY["magic"]).remarks[0]


def test_only_cells_that_an_answer_needs_are_executed() -> None:
    found = read(RING)
    chosen = needed(found.cells, "rotation_table", "rotation_table")
    assert [cell.grade_id for cell in chosen] == ["rotation_table"]
    chosen = needed(found.cells, "ring_forward", "ring_forward")
    assert [cell.grade_id for cell in chosen] == ["setup", "ring_forward"]


def test_an_empty_cell_that_was_asked_for_again_does_not_replace_the_answer(path: Path) -> None:
    made = [code(solution("rotation_table"), "rotation_table"), code(stub("rotation_table"))]
    assert run(written(path, notebook(made)))["rotation_table"](1) == [[0]]
    alone = run(written(path, notebook([code(stub("rotation_table"), "rotation_table")])))
    with pytest.raises(NotImplementedError):
        alone["rotation_table"](1)


def test_an_experiment_that_hangs_is_not_executed(path: Path) -> None:
    made = [code("while True:\n    pass"), code(solution("rotation_table"), "rotation_table")]
    assert run(written(path, notebook(made)))["rotation_table"](1) == [[0]]


def test_an_answer_that_is_not_there_needs_no_cell(path: Path) -> None:
    asked = exercise("ring_forward")
    assert job(asked, asked.cases, [written(path, notebook([code(ANSWER)]))], Limits()) is None


def test_students_are_folders_and_notebooks(tmp_path: Path) -> None:
    (tmp_path / "ann" / "deep" / "down").mkdir(parents=True)
    (tmp_path / "ann" / "deep" / "down" / "a.ipynb").write_text("{}")
    (tmp_path / "ann" / ".ipynb_checkpoints").mkdir()
    (tmp_path / "ann" / ".ipynb_checkpoints" / "a.ipynb").write_text("{}")
    (tmp_path / "bob.ipynb").write_text("{}")
    (tmp_path / "dir.ipynb").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "readme.txt").write_text("")
    found = {student.name: len(student.paths) for student in find(tmp_path)}
    assert found == {"ann": 1, "bob": 1, "dir.ipynb": 0, "empty": 0}


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "a.ipynb").symlink_to(RING)
    (tmp_path / "ann" / "folder").symlink_to(RING.parent)
    (tmp_path / "bob").symlink_to(RING.parent)
    (tmp_path / "cyd.ipynb").symlink_to(RING)
    assert [(student.name, student.paths) for student in find(tmp_path)] == [("ann", ())]


def test_names_that_are_no_text_can_be_printed(tmp_path: Path) -> None:
    os.mkdir(os.path.join(os.fsencode(tmp_path), b"\xff\xfe"))
    (student,) = find(tmp_path)
    assert student.name.encode().decode() == "\\xff\\xfe"


def test_pipes_and_sockets_are_no_notebooks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ann.ipynb")
    (tmp_path / "bob").mkdir()
    os.mkfifo(tmp_path / "bob" / "a.ipynb")
    assert [(student.name, student.paths) for student in find(tmp_path)] == [("bob", ())]


def test_no_folder_and_no_student_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no folder"):
        find(tmp_path / "away")
    with pytest.raises(ValueError, match="holds no submissions"):
        find(tmp_path)
