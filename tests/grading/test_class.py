"""A whole class: a row for everybody, the points that each earned, and where it stopped."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ringlab.commands import grade as command
from ringlab.grade.bulk.tables import NBGRADER
from tests.grading.classes import ANSWERED, MOST, Pupil, hand_in_class
from tests.grading.notebooks import ROOT, SOLUTIONS

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]


def arguments(
    room: Path,
    *,
    records: str = "records",
    csv: str = "grades.csv",
    names: str = ",".join(ANSWERED),
) -> list[str]:
    return [
        str(room / "class"), f"--csv={room / csv}", f"--html={room / 'report.html'}",
        f"--feedback={room / 'feedback'}", f"--nbgrader={room / 'nbgrader.csv'}",
        f"--solutions={SOLUTIONS}", f"--exercises={names}",
        f"--records={room / records}", "--workers=2", "--seconds=10", "--memory=1024",
    ]  # fmt: skip


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def wrong_rows(table: list[dict[str, str]], handed: dict[str, Pupil]) -> list[str]:
    return [
        f"{row['student']} {name}: {row[f'{name} points']} ({row[f'{name} state']})"
        for row in table
        for name in ANSWERED
        if int(row[f"{name} points"]) != handed[row["student"]].points[name]
    ]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("class_of_10")


@pytest.fixture(scope="module")
def handed(room: Path) -> dict[str, Pupil]:
    made = hand_in_class(room / "class", 10, hostile=3)
    assert command.main(arguments(room)) == 0
    return made


def test_everybody_has_one_row_with_the_points_earned(room: Path, handed: dict[str, Pupil]) -> None:
    table = rows(room / "grades.csv")
    assert [row["student"] for row in table] == sorted(handed)
    assert wrong_rows(table, handed) == []
    assert {row["most"] for row in table} == {str(sum(MOST.values()))}
    assert all(
        int(row["points"]) == sum(int(row[f"{name} points"]) for name in ANSWERED) for row in table
    )


def test_the_state_says_what_became_of_each(room: Path, handed: dict[str, Pupil]) -> None:
    states = {
        handed[row["student"]].kind: [row[f"{name} state"] for name in ANSWERED]
        for row in rows(room / "grades.csv")
    }
    assert states["right"] == ["right"] * 3
    assert states["blank"] == ["not written"] * 3
    assert states["partly"] == ["not written", "partly", "not written"]
    assert states["wrong"] == ["wrong", "right", "right"]
    assert states["empty"] == states["absent"] == ["missing"] * 3
    assert states["hostile os._exit(0)"] == ["exit", "not written", "right"]


def test_nbgrader_gets_its_columns(room: Path, handed: dict[str, Pupil]) -> None:
    table = rows(room / "nbgrader.csv")
    assert tuple(table[0]) == NBGRADER
    assert [row["student_id"] for row in table] == sorted(handed)
    assert [float(row["score"]) for row in table] == [
        float(row["points"]) for row in rows(room / "grades.csv")
    ]
    assert {row["max_score"] for row in table} == {"20.0"}


def test_feedback_shows_nothing_hidden(room: Path, handed: dict[str, Pupil]) -> None:
    from tests.grading.notebooks import HIDDEN

    pages = [path.read_text(encoding="utf-8") for path in (room / "feedback").iterdir()]
    assert len(pages) == len(handed)
    pages.append((room / "grades.csv").read_text(encoding="utf-8"))
    for name in ANSWERED:
        for case in HIDDEN[name]:
            told = [case.title, *([str(case.seed)] if case.seed > 99 else [])]
            visible = {"5 ranks", "7 ranks", "8 ranks"}  # also words of hints
            assert not [
                text for text in told if text not in visible and any(text in p for p in pages)
            ]


def test_the_next_run_takes_what_is_there_and_gives_the_same_table(
    room: Path, handed: dict[str, Pupil], capsys: pytest.CaptureFixture[str]
) -> None:
    before = (room / "grades.csv").read_bytes()
    began = time.process_time()
    assert command.main(arguments(room)) == 0
    assert time.process_time() - began < 5
    assert (room / "grades.csv").read_bytes() == before
    assert capsys.readouterr().out.count("(from the last run)") == len(handed)


def test_a_run_that_is_killed_goes_on_where_it_was(room: Path, handed: dict[str, Pupil]) -> None:
    told = arguments(room, records="second", csv="second.csv", names="rotation_table")
    started = [sys.executable, "-m", "ringlab.cli", "grade", *told, "--workers=1"]
    process = subprocess.Popen(started, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(2):
        assert process.stdout.readline()
    below = psutil.Process(process.pid).children(recursive=True)
    assert below
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == []
    kept = len(list((room / "second").glob("*.json")))
    assert 2 <= kept < len(handed)
    finished = subprocess.run(started, cwd=ROOT, capture_output=True, text=True, check=True)
    assert finished.stdout.count("(from the last run)") == kept
    points = [row["points"] for row in rows(room / "second.csv")]
    assert points == [row["rotation_table points"] for row in rows(room / "grades.csv")]


@pytest.mark.slow
@pytest.mark.timeout(4500)
def test_a_hundred_students_are_graded(tmp_path: Path) -> None:
    handed = hand_in_class(tmp_path / "class", 100, hostile=5)
    began = time.monotonic()
    assert command.main(arguments(tmp_path)) == 0
    # 3 exercises take their eighth of the quarter of an hour that 24 may; five times as long
    # on a machine that does something else too.
    assert time.monotonic() - began < 5 * 15 * 60 / 8
    table = rows(tmp_path / "grades.csv")
    assert [row["student"] for row in table] == sorted(handed)
    assert wrong_rows(table, handed) == []
