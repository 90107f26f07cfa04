"""The day as the instructor's guide tells it: hand out, answer, collect, grade, read.

Every command is the guide's own, run from the top of a copy of the repository.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from html import unescape
from pathlib import Path

import pytest

from ringlab.grade.bulk.pages import file_name
from ringlab.grade.bulk.tables import NBGRADER
from ringlab.grade.registry import all_exercises, exercise
from tests.exercises.collection import hidden
from tests.grading import guide
from tests.grading.notebooks import ROOT
from tests.grading.workshop import Handed, hand_in_all

pytestmark = [pytest.mark.processes, pytest.mark.timeout(1800)]

THREE_HOURS, DAY = range(2)
"""Which of the guide's commands grades."""


class Day:
    """One workshop: where it takes place, what is asked, what was handed in.

    Parameters
    ----------
    top : Path
        A copy of the repository.
    command : str
        The guide's, which grades.
    """

    def __init__(self, top: Path, command: str) -> None:
        self.top, self.files = top, guide.files_of(command)
        named = self.files.get("--exercises")
        self.names = named.split(",") if named else [one.name for one in all_exercises()]
        self.run(*guide.commands("Handing out"))
        with tarfile.open(top / "handout.tar.gz") as archive:
            archive.extractall(top / "handed out", filter="data")
        self.handed: list[Handed] = hand_in_all(top / "handed out", top / "submissions", self.names)
        self.run(command)

    def run(self, command: str) -> None:
        """Run a command from the top, with this environment's programs."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        subprocess.run(command, shell=True, cwd=self.top, check=True, timeout=1700,
                       env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)})  # fmt: skip

    def rows(self, option: str) -> list[dict[str, str]]:
        """A table that the command wrote."""
        with (self.top / self.files[option]).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    @property
    def class_page(self) -> str:
        """The page of the class."""
        return (self.top / self.files["--html"]).read_text(encoding="utf-8")

    def feedback(self, student: str) -> str:
        """The page of one learner."""
        path = self.top / self.files["--feedback"] / f"{file_name(student)}.html"
        return unescape(path.read_text(encoding="utf-8"))


@pytest.fixture(
    scope="module",
    params=[THREE_HOURS, pytest.param(DAY, marks=pytest.mark.slow)],
    ids=["three hours", "one day"],
)
def day(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Day:
    top = tmp_path_factory.mktemp("workshop") / "repository"
    top.mkdir()
    for name in (*shlex.split(guide.commands("Handing out")[0]), "solutions"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, top / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, top)
    return Day(top, guide.commands("Grading")[request.param])


def test_everybody_has_a_row_with_what_was_earned(day: Day) -> None:
    earned = {
        row["student"]: {name: int(row[f"{name} points"]) for name in day.names}
        for row in day.rows("--csv")
    }
    nothing = dict.fromkeys(day.names, 0)
    assert earned == {one.student: nothing | one.expected for one in day.handed}
    assert len(earned) >= 12


def test_the_rows_say_what_became_of_the_answers(day: Day) -> None:
    states = {
        row["student"]: {row[f"{name} state"] for name in day.names} for row in day.rows("--csv")
    }
    for student in ("all-right", "own-cells", "asked-for-reset"):
        assert states[student] == {"right"}
    assert states["all-blank"] == {"not written"}
    assert states["leaves-at-once"] == {"exit"}
    assert states["prints-for-ever"] == {"output", "right"}
    assert states["nothing"] == states["cut-short"] == {"missing"}
    for one in map(Path, guide.places()):
        assert states[one.parts[0].removesuffix(".ipynb")] == {"missing", "right"}


def test_what_is_wrong_with_a_notebook_stands_in_its_row(day: Day) -> None:
    remarks = {row["student"]: row["remarks"] for row in day.rows("--csv")}
    assert "could not be read" in remarks["cut-short"]
    assert "no notebook was handed in" in remarks["nothing"]
    assert "commands of IPython were left out" in remarks["own-cells"]
    assert remarks["all-right"] == ""


def test_the_page_of_the_class_shows_distribution_and_commonest_mistakes(day: Day) -> None:
    page = unescape(day.class_page)
    assert f"<h1>{len(day.handed)} submissions</h1>" in page
    assert "visible and hidden cases" in page
    assert all(f"<h2>{title}</h2>" in page for title in ("Distribution", "Exercises", "Students"))
    shares = re.findall(r'<td>\d+ to \d+ %</td><td class="n">(\d+)</td>', page)
    assert sum(map(int, shares)) == len(day.handed)
    row = r'<td>(\w+)</td><td>([^<]+)</td><td class="n">(\d+)</td><td>([^<]*)</td>'
    listed = {(name, kind): (int(n), told) for name, kind, n, told in re.findall(row, page)}
    made = Counter(
        (name, mistake.replace("_", " "))
        for one in day.handed
        for name, mistake in one.told.items()
    )
    (kind, count), *_ = made.most_common()
    assert listed[kind][0] == count == 2
    assert not {what for _, what in listed} & {"missing", "not written"}
    for name, mistake in set(made) & set(listed):
        known = exercise(name).mistake(mistake.replace(" ", "_"))
        assert listed[name, mistake] == (made[name, mistake], known.hint)


def test_each_learner_gets_a_page_with_the_hint_for_each_mistake(day: Day) -> None:
    assert len(list((day.top / day.files["--feedback"]).iterdir())) == len(day.handed)
    for one in day.handed:
        page = day.feedback(one.student)
        assert page.count("<h2>") == len(day.names)
        for name, mistake in one.told.items():
            assert exercise(name).mistake(mistake).hint in page


def test_no_learner_reads_a_hidden_case(day: Day) -> None:
    pages = [day.feedback(one.student) for one in day.handed]
    for name in day.names:
        shown = {case.title for case in exercise(name).cases}
        for title in {case.title for case in hidden()[name]} - shown:
            assert not [page for page in pages if f"tried: {title}\n" in page], title


def test_nbgrader_reads_the_points(day: Day) -> None:
    rows = day.rows("--nbgrader")
    assert tuple(rows[0]) == NBGRADER
    points = [float(row["points"]) for row in day.rows("--csv")]
    assert [float(row["score"]) for row in rows] == points


def test_the_repository_holds_nothing_but_what_the_commands_wrote(day: Day) -> None:
    written = {str(Path(name)) for option, name in day.files.items() if option != "--exercises"}
    written |= {"handed out", "handout.tar.gz", "submissions", ".ringlab-grades"}
    before = {*shlex.split(guide.commands("Handing out")[0]), "solutions"}
    assert {path.name for path in day.top.iterdir()} <= before | written
