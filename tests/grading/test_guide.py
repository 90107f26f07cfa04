"""The instructor's guide speaks of exercises, mistakes and files that there are."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from ringlab.grade.registry import all_exercises, exercise
from tests.grading import guide
from tests.grading.notebooks import ROOT

PLANS = ("Three hours", "One day")


@pytest.mark.parametrize("title", PLANS)
def test_a_plan_names_exercises_of_the_course(title: str) -> None:
    planned = guide.exercises_planned(title)
    assert len(planned) >= 5
    assert [exercise(name).name for name in planned] == planned


def test_the_three_hours_are_graded_on_what_is_planned_before_the_homework() -> None:
    command, _ = guide.commands("Grading")
    graded = guide.files_of(command)["--exercises"].split(",")
    assert graded == guide.exercises_planned("Three hours")[: len(graded)]
    assert len(graded) >= 5


def test_each_exercise_has_a_mistake_that_the_guide_explains() -> None:
    explained = guide.mistakes_explained()
    assert {name for names, _ in explained for name in names} == {e.name for e in all_exercises()}


@pytest.mark.parametrize(("names", "mistakes"), guide.mistakes_explained(), ids=str)
def test_a_mistake_that_is_explained_is_one_that_the_page_can_name(
    names: list[str], mistakes: list[str]
) -> None:
    known = {m.name.replace("_", " ") for name in names for m in exercise(name).mistakes}
    assert set(mistakes) <= known
    for name in names:
        assert {m.name.replace("_", " ") for m in exercise(name).mistakes} & set(mistakes), name


def test_the_guide_has_commands_to_hand_out_and_to_grade_and_no_others() -> None:
    text = (ROOT / "solutions" / "README.md").read_text(encoding="utf-8")
    found = guide.commands("Handing out") + guide.commands("Grading")
    assert len(found) == text.count("```sh\n") == 3


def test_what_is_handed_out_installs_and_holds_no_solution(tmp_path: Path) -> None:
    (command,) = guide.commands("Handing out")
    aside = command.replace("handout.tar.gz", str(tmp_path / "handout.tar.gz"))
    subprocess.run(aside, shell=True, cwd=ROOT, check=True)
    with tarfile.open(tmp_path / "handout.tar.gz") as archive:
        names = archive.getnames()
    assert not [name for name in names if name.startswith(("solutions", "tests"))]
    needed = ["tools/setup_env.py", "tools/find-python.sh", "ringlab/__init__.py", "Makefile"]
    lessons = [f"{folder}/{one.name}" for folder in ("exercises", "notebooks")
               for one in (ROOT / folder).glob("*.ipynb")]  # fmt: skip
    assert {*needed, *lessons} <= set(names)
