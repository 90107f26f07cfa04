"""`check` answers before a learner thinks of something else: in under two seconds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ringlab.grade import check
from ringlab.grade.notebook import front_end
from ringlab.grade.notebook.session import stub
from tests.exercises.collection import exercises
from tests.exercises.test_solutions import ROOT, answers, notebook_of

FIRST_TIER = {"ring_backward"}
"""The one that computes most."""
MOST = 10.0
"""CPU seconds: five times what a quiet machine may take, and ten times what it does."""

every_exercise = pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in FIRST_TIER else pytest.mark.slow) for n in exercises()],
)


@pytest.fixture(autouse=True)
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was shown; each is drawn as a notebook would."""
    shown: list[object] = []

    def show(thing: object) -> None:
        shown.append(thing)
        for name in ("_repr_mimebundle_", "_repr_html_"):
            if hasattr(thing, name):
                getattr(thing, name)()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(front_end, "show", show)
    return shown


def seconds(name: str, answer: object) -> float:
    began = time.process_time()
    check(name, answer)
    return time.process_time() - began


@every_exercise
def test_a_solution_is_checked_in_under_two_seconds(name: str, drawn: list[object]) -> None:
    exercise = exercises()[name]
    answer = answers(notebook_of(name, ROOT / "solutions"))[exercise.answer]
    assert seconds(name, answer) < MOST
    assert len(drawn) == 1 + (exercise.draw is not None)


@every_exercise
def test_a_stub_is_checked_in_under_two_seconds(name: str, drawn: list[object]) -> None:
    namespace: dict[str, object] = {}
    exec(stub(name), namespace)
    assert seconds(name, namespace[exercises()[name].answer]) < MOST
    assert drawn
