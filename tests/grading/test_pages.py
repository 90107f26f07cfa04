"""Pages and tables show learners' text as text, and hide what is hidden."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from ringlab.grade.bulk import pages, tables
from ringlab.grade.bulk.grades import Grade, Sheet
from ringlab.grade.bulk.pages import file_name
from ringlab.grade.bulk.questions import grade
from ringlab.grade.exercise import Exercise
from ringlab.grade.isolation.job import FINISHED, Ended
from ringlab.grade.observation import Failure, Observation
from ringlab.grade.observe import nothing_happened
from ringlab.grade.registry import exercise
from ringlab.timeline import Timeline
from tests.grading.notebooks import HIDDEN

SCRIPT = "<script>alert('x')</script><img src=x onerror=alert(1)>&amp;"


def sheet(student: str, **changed: object) -> Sheet:
    values = {"exercise": "rotation_table", "points": 0, "most": 2, "earned": {"table": 0},
              "state": "wrong"}  # fmt: skip
    return Sheet(student, "", (Grade(**{**values, **changed}),), (f"remark of {student}",))


def hostile() -> Sheet:
    return sheet(SCRIPT, state=SCRIPT, message=SCRIPT, mistake=SCRIPT, hint=SCRIPT,
                 shown=(SCRIPT,), notes=(SCRIPT,))  # fmt: skip


def test_text_of_learners_never_becomes_html(tmp_path: Path) -> None:
    pages.write_class([hostile(), sheet("ann")], tmp_path / "class.html", hidden=True)
    written = [tmp_path / "class.html", pages.write_feedback(hostile(), tmp_path)]
    for text in (path.read_text(encoding="utf-8") for path in written):
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text
        assert "default-src 'none'" in text


@pytest.mark.browser
def test_no_script_of_a_learner_runs(tmp_path: Path, browser: object) -> None:
    path = tmp_path / "class.html"
    pages.write_class([hostile()], path, hidden=True)
    page = browser.new_page()
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    assert page.locator("script, img").count() == 0
    assert SCRIPT in page.inner_text("body")
    assert said == []
    page.close()


@pytest.mark.parametrize("student", ["../../etc/passwd", "a/b", "..", "", "CON", "a\0b", "x" * 999])
def test_a_page_is_written_into_its_folder_whatever_the_name(student: str) -> None:
    assert re.fullmatch(r"[a-z0-9_-]{1,70}", file_name(student))


def test_names_that_look_alike_get_pages_of_their_own() -> None:
    alike = ["ann", "Ann", "ANN", "ann ", "ann.", "a nn", "a_nn", "änn"]
    assert len({file_name(name) for name in alike}) == len(alike)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " ="])
def test_no_cell_of_a_table_is_a_formula(tmp_path: Path, start: str) -> None:
    found = sheet(f"{start}HYPERLINK('x')", state=f"{start}1")
    tables.write_csv([found], tmp_path / "a.csv")
    tables.write_nbgrader([found], tmp_path / "b.csv", f"{start}x")
    for name in ("a.csv", "b.csv"):
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell.lstrip()[:1] in tuple("=+-@")]


def test_the_columns_are_those_of_nbgraders_export() -> None:
    # As nbgrader 0.9 writes them (plugins/export.py), in its order.
    assert tables.NBGRADER == (
        "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
        "raw_score", "late_submission_penalty", "score", "max_score",
    )  # fmt: skip


def test_a_sheet_is_the_same_after_it_was_kept() -> None:
    kept = hostile()
    assert Sheet.from_json(kept.as_json()) == kept


def hidden_only(asked: Exercise) -> Ended:
    """Right in what can be seen, wrong in what cannot."""
    cases = (*asked.cases, *HIDDEN[asked.name])
    seen = []
    for case in cases:
        size = case.integer("size")
        table = [[(r - s) % size for r in range(size)] for s in range(size)]
        seen.append(Observation((table if not case.hidden else [[0]],), Timeline(1), peaks=(0,)))
    return Ended(FINISHED, "", tuple(o.to_bytes() for o in seen), (), "", 0.0, True)


def test_of_a_hidden_case_only_its_being_is_told(tmp_path: Path) -> None:
    asked = exercise("rotation_table")
    given = grade(asked, (*asked.cases, *HIDDEN[asked.name]), hidden_only(asked))
    assert given.points == 0
    assert given.shown == ("All cases that you can see pass; one that you cannot see does not.",)
    text = pages.write_feedback(Sheet("ann", "", (given,)), tmp_path).read_text(encoding="utf-8")
    for case in HIDDEN[asked.name]:
        assert f"tried: {case.title}" not in text
    assert "[[0]]" not in text
    assert "7 ranks" not in text


@pytest.mark.parametrize(
    ("kind", "state"),
    [("ValueError", "ValueError"), ("Deadlock", "Deadlock"), ("Seed1031Size5", "failed")],
)
def test_a_failure_in_a_hidden_case_is_not_quoted(kind: str, state: str) -> None:
    asked = exercise("rotation_table")
    ended = hidden_only(asked)
    told = nothing_happened(1, Failure(kind, "size is 5 here, expected [[0, 1]]"))
    parts = [*ended.observations[: len(asked.cases)], *[told.to_bytes()] * len(HIDDEN[asked.name])]
    given = grade(asked, (*asked.cases, *HIDDEN[asked.name]),
                  Ended(FINISHED, "", tuple(parts), (), "", 0.0, True))  # fmt: skip
    assert (given.state, given.message) == (state, "in a case that you cannot see")
    assert "size is 5" not in str(given)
