"""The manifest of the course, and what is made of it."""

import dataclasses
import re

import pytest

from tools.course import tables
from tools.course.manifest import FOLDER, MANIFEST, course, lesson, written

LESSONS = written()


def changed(tmp_path, before, after):
    copy = tmp_path / "course.toml"
    text = MANIFEST.read_text(encoding="utf-8")
    assert before in text
    copy.write_text(text.replace(before, after), encoding="utf-8")
    return copy


def test_the_manifest_names_every_notebook_and_seven_lessons():
    assert {path.name for path in FOLDER.glob("*.ipynb")} == {each.file for each in LESSONS}
    assert len(course()) == 7
    assert {"02", "03"} <= {each.number for each in LESSONS}


def test_the_file_of_a_lesson_begins_with_its_number():
    assert all(each.file.startswith(f"{each.number}_") for each in course())


@pytest.mark.parametrize("each", LESSONS, ids=[each.file for each in LESSONS])
def test_the_table_at_the_head_of_a_lesson_is_that_of_the_manifest(each):
    head = each.read().cells[0].source
    assert tables.with_head(head, each) == head
    other = dataclasses.replace(each, minutes=each.minutes + 5)
    assert tables.with_head(head, other) != head


def test_the_table_at_the_head_links_the_lessons_that_come_before():
    ring = next(each for each in course() if each.number == "03")
    after = dataclasses.replace(ring, after=("02",), exercises=("03_the_ring.ipynb",))
    table = tables.head_table(after)
    assert "[02 Online softmax](02_online_softmax.ipynb)" in table
    assert "(../exercises/03_the_ring.ipynb)" in table


def test_a_lesson_with_another_title_or_without_a_table_is_refused():
    first = LESSONS[0]
    with pytest.raises(ValueError, match="does not begin with"):
        tables.with_head("# 99 · Something\n\n| | |\n", first)
    with pytest.raises(ValueError, match="no table"):
        tables.with_head(f"# {first.number} · {first.title}\n\nText.\n", first)


def test_lessons_come_in_order(tmp_path):
    with pytest.raises(ValueError, match="numbered 00, 01, 02"):
        course(changed(tmp_path, 'number = "01"', 'number = "07"'))


def test_only_earlier_lessons_come_before(tmp_path):
    with pytest.raises(ValueError, match="only earlier lessons"):
        course(changed(tmp_path, 'after = ["02", "03"]', 'after = ["06"]'))


@pytest.mark.parametrize(
    ("change", "said"),
    [({"gpus": "many"}, 'gpus is "none" or "optional"'), ({"minute": 3}, "has the fields")],
)
def test_a_field_without_meaning_is_refused(change, said):
    fields = dataclasses.asdict(LESSONS[0])
    assert lesson(dict(fields)) == LESSONS[0]
    with pytest.raises(ValueError, match=said):
        lesson({**fields, **change})


def test_the_table_of_lessons_leaves_out_what_is_not_written():
    table = tables.lessons_table()
    assert all(each.file in table for each in LESSONS)
    assert not [each.file for each in course() if not each.written and each.file in table]


def reading_minutes(notebook):
    """What a careful reader takes: prose, code, and a minute for each prediction."""
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    lines = sum(len(c.source.splitlines()) for c in notebook.cells if c.cell_type == "code")
    return len(re.findall(r"\w+", prose)) / 200 + lines / 25 + prose.count("**Predict.**")


@pytest.mark.parametrize("each", LESSONS, ids=[each.file for each in LESSONS])
def test_the_minutes_of_a_lesson_are_those_that_reading_it_takes(each):
    assert 0.6 < reading_minutes(each.read()) / each.minutes < 1.3
    assert 0 < each.minutes_for_tasks <= each.minutes


@pytest.mark.parametrize("each", LESSONS, ids=[each.file for each in LESSONS])
def test_a_lesson_that_can_use_gpus_says_what_it_chose_and_others_ask_for_none(each):
    chooses = re.compile(r"real_ranks\(|[\"']nccl[\"']")
    said = [
        "".join(output.get("text", "") for output in cell.outputs)
        for cell in each.read().cells
        if cell.cell_type == "code" and chooses.search(cell.source)
    ]
    assert bool(said) == (each.gpus == "optional")
    assert each.gpus == "none" or any("GPU" in text for text in said)


def test_the_exercises_that_the_manifest_names_are_there():
    named = {name for each in course() for name in each.exercises}
    folder = FOLDER.parent / "exercises"
    assert named == {path.name for path in folder.glob("*.ipynb")}
