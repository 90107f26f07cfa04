"""What a learner sees: feedback, hints, progress, stubs."""

from __future__ import annotations

import json
import multiprocessing
import re
from pathlib import Path

import pytest
import torch

from ringlab.grade import check, hint, points, progress, reset
from ringlab.grade.judge import report
from ringlab.grade.notebook.feedback import Feedback, advice, picture
from ringlab.grade.notebook.progress import FILE, Progress, Standing
from ringlab.grade.notebook.session import stub
from ringlab.grade.registry import exercise
from tests.exercises.bank.ring_forward.failures import send_before_receive_a
from tests.exercises.bank.ring_forward.right import right_a
from tests.exercises.bank.ring_forward.traffic import gathers_everything_a
from tests.exercises.bank.rotation_table import answers as tables
from tests.exercises.collection import hidden
from tests.notebooks.form import UNSAFE_HTML


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tried(name: str, answer, cases=()):
    entry = exercise(name)
    seen = [(case, entry.look(answer, case)) for case in (*entry.cases, *cases)]
    return report(entry, seen), seen


def told(name: str, answer, cases=()) -> Feedback:
    judged, _ = tried(name, answer, cases)
    return Feedback(judged, advice(judged, 0))


def test_check_says_what_was_tried_what_was_expected_what_came_and_why(capsys):
    check("ring_forward", gathers_everything_a)
    said = capsys.readouterr().out
    assert "ring_forward: not yet, 5 of 10 points in 5 cases" in said
    assert "2 ranks, 3 tokens each ✗" in said
    assert "expected  rank 0 sends 1 hop of 768 B, in messages" in said
    assert "called all_gather" in said
    assert exercise("ring_forward").mistake("gathers_everything").hint in said
    assert "A matrix of bytes sent among 2 ranks" in said  # the picture, in words


def test_check_shows_the_ring_of_a_right_answer(capsys):
    check("ring_forward", right_a)
    said = capsys.readouterr().out
    assert "solved, 10 of 10 points" in said
    assert "solutions/" in said
    _, seen = tried("ring_forward", right_a)
    drawn = picture(tried("ring_forward", right_a)[0], seen)
    assert drawn is not None
    assert "5 ranks" in drawn.alt


def test_check_draws_a_deadlock_and_tells_its_lines():
    judged, seen = tried("ring_forward", send_before_receive_a)
    drawn = picture(judged, seen)
    assert drawn is not None
    assert "rank 0 waits for rank 1" in drawn.alt
    text = told("ring_forward", send_before_receive_a).text()
    assert "failures.py" in text
    assert judged.mistake.hint in text


def test_an_answer_that_is_not_written_yet_is_told_how_to_begin(capsys):
    def rotation_table(size):
        raise NotImplementedError()

    check("rotation_table", rotation_table)
    said = capsys.readouterr().out
    assert "Nothing is written yet" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("answer", [None, [[0]], 3])
def test_a_result_in_place_of_the_function_is_told(answer, capsys):
    check("rotation_table", answer)
    assert "check('rotation_table', rotation_table)" in capsys.readouterr().out


def test_a_wrong_answer_of_an_unknown_kind_is_told_where_it_differs(capsys):
    check("rotation_table", lambda size: [[5] * size] * size)
    said = capsys.readouterr().out
    assert "rank 0, entry 0, entry 0: 5" in said
    assert "none of the mistakes known here" in said


def test_an_exercise_that_does_not_exist_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'ring_forward'"):
        check("ring_foward", right_a)


def test_nothing_of_a_hidden_case_is_shown():
    cases = hidden()["rotation_table"]
    table = lambda size: tables.right_a(size) if size < 5 else [[0] * size] * size  # noqa: E731
    feedback = told("rotation_table", table, cases)
    for text in (feedback.text(), feedback._repr_html_()):
        assert "a hidden case" in text
        assert "entry" not in text
        assert not any(case.title in text for case in cases)


def test_the_table_is_html_that_needs_no_trust():
    page = told("ring_forward", send_before_receive_a)._repr_html_()
    assert not UNSAFE_HTML.search(page)
    assert "<module>" not in page


def test_points_are_a_float_of_visible_and_hidden_cases():
    table = lambda size: tables.right_a(size) if size < 5 else []  # noqa: E731
    assert points("rotation_table", table) == 2.0
    assert points("rotation_table", table, hidden=[{"title": "6", "options": {"size": 6}}]) == 0.0


def test_hints_come_one_after_another_and_end_with_the_solution(capsys):
    said = []
    for _ in range(3):
        hint("ring_overlap")
        said.append(capsys.readouterr().out)
    first, second = exercise("ring_overlap").hints
    assert first in said[0]
    assert second not in said[0]
    assert second in said[1]
    assert "solutions/" in said[2]
    assert Progress().of("ring_overlap").hints == 2


def test_progress_is_kept_in_a_file_beside_the_notebook(capsys):
    check("rotation_table", tables.wrong_direction_a)
    check("rotation_table", tables.right_b)
    check("rotation_table", tables.nothing_moves_a)
    assert Progress().of("rotation_table") == Standing(attempts=3, best=2, solved=True, hints=0)
    capsys.readouterr()
    progress()
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"1 of \d+ exercises solved, 2 of \d+ points\.", lines[0])
    assert lines[1].split() == ["lesson", "exercise", "solved", "points", "attempts", "hints"]
    assert any(line.split()[:4] == ["03", "rotation_table", "✓", "2"] for line in lines)
    assert any(line.split()[:3] == ["03", "ring_forward", "0"] for line in lines)


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\xff\n",
        b"{",
        b"[1]\n",
        b'{"exercise": 3}\n',
        b'{"exercise": "a"',
        b"[" * 10**5 + b"\n",
    ],
    ids=lambda damage: repr(damage[:12]),
)
def test_a_damaged_line_costs_that_line_alone(damage):
    Progress().attempt("first", 1, False)
    with Path(FILE).open("ab") as file:
        file.write(damage)
    Progress().attempt("second", 2, True)
    found = Progress().standings()
    assert found["first"].best == 1
    assert found["second"].solved


def _note(path: Path, name: str) -> None:
    for _ in range(100):
        Progress(path).attempt(name, 1, False)


def test_two_kernels_at_once_lose_nothing(tmp_path: Path):
    path = tmp_path / "shared.jsonl"
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=_note, args=(path, name)) for name in ("a", "b")]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert {name: s.attempts for name, s in Progress(path).standings().items()} == {
        "a": 100,
        "b": 100,
    }
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_folder_that_cannot_be_written_to_costs_the_record_only(monkeypatch, capsys):
    monkeypatch.setattr("os.open", lambda *_: (_ for _ in ()).throw(PermissionError()))
    check("rotation_table", tables.right_a)
    assert "solved" in capsys.readouterr().out


def test_reset_gives_the_stub_back(capsys):
    check("rotation_table", tables.right_a)
    capsys.readouterr()
    reset("rotation_table")
    said = capsys.readouterr().out
    assert said.startswith("def rotation_table(size):")
    assert "raise NotImplementedError()" in said
    assert "[" not in said
    assert Progress().of("rotation_table").solved


def test_a_stub_defines_the_answer_and_nothing_more():
    for name in ("rotation_table", "ring_forward", "ring_overlap"):
        defined: dict = {}
        exec(stub(name), defined)
        assert set(defined) - {"__builtins__"} == {exercise(name).answer}


def test_an_answer_that_seeds_or_patches_leaves_the_inputs_alone():
    def answer(q, k, v):
        torch.manual_seed(0)
        k.zero_()
        return right_a(q, k, v)

    judged, _ = tried("ring_forward", answer)
    assert judged.points < 10
    assert tried("ring_forward", right_a)[0].passed
