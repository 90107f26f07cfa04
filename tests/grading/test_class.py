"""A class drawn from the bank: a row for everybody, what each earned, and where it stopped."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ringlab.commands import grade as command
from tests.grading.bank_class import Learner, drawn_class
from tests.grading.notebooks import ROOT, SOLUTIONS

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

FEW = ("rotation_table", "merge_parts", "total_merge")
CORES = 2
MOST_SECONDS = 15 * 60
"""For a hundred learners, all exercises and two cores that do nothing else."""


def arguments(room: Path, table: str, records: str, *more: str) -> list[str]:
    return [
        str(room / "class"), f"--csv={room / table}", f"--html={room / 'report.html'}",
        f"--solutions={SOLUTIONS}", f"--records={room / records}", *more,
    ]  # fmt: skip


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def kept(records: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """What is in the records: grades by student and exercise."""
    sheets = [json.loads(path.read_text(encoding="utf-8")) for path in records.glob("*.json")]
    return {s["student"]: {g["exercise"]: g for g in s["grades"]} for s in sheets}


def unlike(learners: list[Learner], records: Path) -> list[str]:
    """The grades that are not what the bank says of the answer, with what is said of them."""
    found = kept(records)
    wrong = []
    for learner in learners:
        for name, grade in found[learner.name].items():
            answer = learner.answers.get(name)
            expected = (answer.points, answer.mistake) if answer else (0, "")
            if (grade["points"], grade["mistake"]) != expected:
                told = f"{grade['points']} {grade['mistake']} ({grade['state']})"
                wrong.append(f"{learner.name} {name}: {told}, expected {expected}")
    return wrong


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("few")


@pytest.fixture(scope="module")
def few(room: Path) -> list[Learner]:
    """A few learners, and all of them graded."""
    learners = drawn_class(7, 1, FEW)
    for learner in learners:
        learner.hand_in(room / "class")
    assert command.main(arguments(room, "grades.csv", "records", graded(*FEW))) == 0
    return learners


def graded(*names: str) -> str:
    return f"--exercises={','.join(names)}"


def test_everybody_earns_what_the_bank_says(room: Path, few: list[Learner]) -> None:
    table = rows(room / "grades.csv")
    assert [row["student"] for row in table] == [learner.name for learner in few]
    assert unlike(few, room / "records") == []
    assert [int(row["points"]) for row in table] == [learner.points for learner in few]


def test_the_next_run_takes_what_is_there_and_gives_the_same_table(
    room: Path, few: list[Learner], capsys: pytest.CaptureFixture[str]
) -> None:
    before = (room / "grades.csv").read_bytes()
    began = time.process_time()
    assert command.main(arguments(room, "grades.csv", "records", graded(*FEW))) == 0
    assert time.process_time() - began < 5
    assert (room / "grades.csv").read_bytes() == before
    assert capsys.readouterr().out.count("(from the last run)") == len(few)


def test_a_run_that_is_killed_goes_on_where_it_was(room: Path, few: list[Learner]) -> None:
    told = arguments(room, "second.csv", "second", graded("rotation_table"), "--workers=1")
    started = [sys.executable, "-m", "ringlab.cli", "grade", *told]
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
    done = {path.name: path.stat().st_mtime_ns for path in (room / "second").glob("*.json")}
    assert 2 <= len(done) < len(few)
    finished = subprocess.run(started, cwd=ROOT, capture_output=True, text=True, check=True)
    assert finished.stdout.count("(from the last run)") == len(done)
    after = {path.name: path.stat().st_mtime_ns for path in (room / "second").glob("*.json")}
    assert done.items() <= after.items()
    points = [row["points"] for row in rows(room / "second.csv")]
    assert points == [row["rotation_table points"] for row in rows(room / "grades.csv")]


def used() -> float:
    """CPU seconds of this process and of all that it started and that ended."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, both))


@pytest.mark.slow
@pytest.mark.timeout(2 * 60 * 60)
def test_a_hundred_learners_are_graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learners = drawn_class(100, 5)
    for learner in learners:
        learner.hand_in(tmp_path / "class")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    began, before = used(), set(psutil.pids())
    wall = time.monotonic()
    assert command.main(arguments(tmp_path, "grades.csv", "records", f"--workers={CORES}")) == 0
    wall, took = time.monotonic() - wall, (used() - began) / CORES
    print(f"{wall:.0f} s; {took:.0f} s of CPU time on each of {CORES} cores")
    assert took < MOST_SECONDS
    assert wall < 5 * MOST_SECONDS
    table = rows(tmp_path / "grades.csv")
    assert [row["student"] for row in table] == [learner.name for learner in learners]
    assert unlike(learners, tmp_path / "records") == []
    assert [int(row["points"]) for row in table] == [learner.points for learner in learners]
    assert list((tmp_path / "temporary").iterdir()) == []
    left = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
    assert left == []
