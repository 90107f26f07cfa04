"""A crash, a hang or a flood costs its question alone, and the grade says which it was."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from ringlab.grade.bulk.grades import Sheet
from tests.grading.graded import of, sheets
from tests.grading.hostile import HOSTILE, RIGHT
from tests.grading.notebooks import answers, code, hand_in, notebook, solution

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

DEADLOCK = """
import torch.distributed as dist
def ring_forward(q, k, v):
    rank, size = dist.get_rank(), dist.get_world_size()
    if size > 1:
        dist.recv(k, group_src=(rank - 1) % size)
        dist.send(k, group_dst=(rank + 1) % size)
    return q
"""
LONG = ("python loop", "loop that catches all", "long sleep", "fork bomb", "memory in pieces",
        "prints for ever", "thousands of threads")  # fmt: skip
QUICK = [name for name in HOSTILE if name not in LONG]
SPARED = ("os._exit(0)", "segmentation fault", "C loop")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sheet]:
    room = tmp_path_factory.mktemp("hostile")
    other = solution("ring_overlap")
    for name, hostile in ((name, HOSTILE[name]) for name in QUICK):
        texts = {"rotation_table": hostile.text}
        hand_in(room, name, answers(texts | ({"ring_overlap": other} if name in SPARED else {})))
    hand_in(room, "deadlock", answers({"ring_forward": DEADLOCK}))
    with pytest.MonkeyPatch.context() as patch:
        temporary = tmp_path_factory.mktemp("temporary")
        patch.setenv("TMPDIR", str(temporary))
        made = sheets(room, tmp_path_factory.mktemp("records"))
    assert list(temporary.iterdir()) == []
    return made


@pytest.mark.parametrize("name", QUICK)
def test_the_grade_says_what_happened(graded: dict[str, Sheet], name: str) -> None:
    grade, hostile = of(graded[name], "rotation_table"), HOSTILE[name]
    assert (grade.points, grade.state in hostile.states) == (hostile.points, True), grade


@pytest.mark.parametrize("name", SPARED)
def test_the_other_answers_of_the_notebook_keep_their_points(
    graded: dict[str, Sheet], name: str
) -> None:
    assert of(graded[name], "ring_overlap").points == 8


def test_a_deadlock_is_named(graded: dict[str, Sheet]) -> None:
    grade = of(graded["deadlock"], "ring_forward")
    assert (grade.points, grade.state) == (0, "Deadlock")


def test_everybody_has_a_row(graded: dict[str, Sheet]) -> None:
    assert set(graded) == {*QUICK, "deadlock"}
    assert not {g.state for sheet in graded.values() for g in sheet.grades} & {"grader", "lost"}


def test_no_process_is_left(graded: dict[str, Sheet]) -> None:
    assert graded
    commands = [p.info["cmdline"] for p in psutil.process_iter(["cmdline"])]
    assert ["sleep", "602"] not in commands


def test_what_went_wrong_in_the_cells_is_told(graded: dict[str, Sheet]) -> None:
    grade = of(graded["uses a missing import"], "rotation_table")
    assert any("ModuleNotFoundError: No module named 'not_there'" in note for note in grade.notes)


def test_an_answer_that_needs_an_unseen_cell_gets_all_of_them(tmp_path: Path) -> None:
    answer = f"def rotation_table(size):\n    assert secret\n    return {RIGHT}"
    cells = [code("globals()['sec' + 'ret'] = 1"), code(answer, "rotation_table")]
    hand_in(tmp_path / "class", "ann", notebook(cells))
    made = sheets(tmp_path / "class", tmp_path / "records", workers=1)
    grade = of(made["ann"], "rotation_table")
    assert (grade.points, grade.state) == (2, "right")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_takes_long_to_end_is_ended_too(tmp_path: Path) -> None:
    for name in LONG:
        hand_in(tmp_path / "class", name, answers({"rotation_table": HOSTILE[name].text}))
    made = sheets(tmp_path / "class", tmp_path / "records")
    grades = {name: of(made[name], "rotation_table") for name in LONG}
    assert {name: grade.points for name, grade in grades.items()} == dict.fromkeys(LONG, 0)
    assert not {n: g.state for n, g in grades.items() if g.state not in HOSTILE[n].states}
