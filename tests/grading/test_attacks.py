"""Every attack of the corpus earns nothing, and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from ringlab.grade.bulk.grades import Sheet
from tests.grading.corpus import Attack, attacks
from tests.grading.graded import of, sheets
from tests.grading.notebooks import RING, answers, hand_in, solution

pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(600),
    pytest.mark.landlock,
]

MARK = f"left-by-an-attack-{os.getpid()}"
HONEST = "honest"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacked")


@pytest.fixture(scope="module")
def graded(room: Path) -> dict[str, Sheet]:
    places = {"SOLUTIONS": str(RING), "FOLDER": str(room), "MARK": MARK}
    for attack in attacks():
        cell = attack.aimed(places)
        hand_in(room / "submissions", attack.name, answers({attack.exercise: cell}))
    honest = {name: solution(name) for name in ("rotation_table", "ring_forward")}
    hand_in(room / "submissions", HONEST, answers(honest))
    temporary = room / "temporary"
    temporary.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setenv("SECRET_TOKEN", "x")
        return sheets(room / "submissions", room / "records")


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name)
def test_an_attack_earns_nothing(graded: dict[str, Sheet], attack: Attack) -> None:
    grade = of(graded[attack.name], attack.exercise)
    assert grade.points == 0, grade
    assert grade.state != "right"


def test_the_solutions_beside_them_earn_all(graded: dict[str, Sheet]) -> None:
    grades = [of(graded[HONEST], name) for name in ("rotation_table", "ring_forward")]
    assert [(grade.points, grade.state) for grade in grades] == [(2, "right"), (10, "right")]
    assert all(grade.sealed for grade in grades)


def test_no_attack_makes_the_grader_fail(graded: dict[str, Sheet]) -> None:
    assert len(graded) == len(attacks()) + 1
    assert {g.state for sheet in graded.values() for g in sheet.grades}.isdisjoint(
        {"grader", "lost"}
    )


def test_no_attack_leaves_a_process(graded: dict[str, Sheet]) -> None:
    assert graded
    lines = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if line and MARK in " ".join(line)]


def test_no_attack_leaves_a_file(graded: dict[str, Sheet], room: Path) -> None:
    assert sorted(path.name for path in room.iterdir()) == ["records", "submissions", "temporary"]
    assert list((room / "temporary").iterdir()) == []
    assert len(list((room / "records").iterdir())) == len(graded)
    notebooks = list((room / "submissions").rglob("*"))
    assert len(notebooks) == 2 * len(graded)


def test_what_is_said_of_an_attack_names_it(graded: dict[str, Sheet]) -> None:
    def said(name: str) -> str:
        attack = next(attack for attack in attacks() if attack.name == name)
        grade = of(graded[name], attack.exercise)
        return f"{grade.state}: {grade.message}"

    assert said("shares_a_global").startswith("beside: its results stay the same whatever")
    assert said("silent_messages") == ("replaced: it replaced torch.distributed.batch_isend_irecv.")
    assert said("searches_memory") == "refused: it asked for gc.get_objects."
    assert said("forges_frames").startswith("forged: it wrote into the channel")
    assert said("stops_itself").startswith("time: it took longer than")
    assert "Write it yourself" in said("library_answer")
    assert said("enormous_frame").startswith("results: ")


def test_there_are_enough_attacks_and_each_says_what_it_tries() -> None:
    assert len(attacks()) >= 28
    assert all(len(attack.tries) > 20 for attack in attacks())
    assert len({attack.tries for attack in attacks()}) == len(attacks())
