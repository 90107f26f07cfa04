from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from tests.exercises.collection import RIGHT, Entry, entries, exercises, judged

MISTAKES_AN_EXERCISE = 4
WRONG_ANSWERS = 300
"""Of all exercises together; each of them stands in the bank in several forms."""
FORMS = 2


def form_by_form() -> list[Any]:
    """Every wrong answer; of each mistake the first form is in the first tier."""
    met: set[tuple[str, str]] = set()
    cases = []
    for entry in entries():
        if entry.mistake == RIGHT:
            continue
        again = (entry.exercise, entry.mistake) in met
        met.add((entry.exercise, entry.mistake))
        cases.append(pytest.param(entry, id=entry.id, marks=[pytest.mark.slow] if again else []))
    return cases


every_wrong = pytest.mark.parametrize(
    "entry", [e for e in entries() if e.mistake != RIGHT], ids=lambda e: e.id
)
every_right = pytest.mark.parametrize(
    "entry", [e for e in entries() if e.mistake == RIGHT], ids=lambda e: e.id
)


def is_told_of(entry: Entry, *, also_hidden: bool) -> None:
    report = judged(exercises()[entry.exercise], entry.answer, also_hidden=also_hidden)
    assert not report.passed
    assert report.points < report.exercise.points
    assert report.mistake is not None, report.worst
    assert report.mistake.name == entry.mistake, report.worst


@pytest.mark.parametrize("entry", form_by_form())
def test_a_wrong_answer_is_rejected_with_the_hint_that_names_its_mistake(entry: Entry):
    is_told_of(entry, also_hidden=False)


@pytest.mark.slow
@every_wrong
def test_the_hidden_cases_name_the_same_mistake(entry: Entry):
    is_told_of(entry, also_hidden=True)


@every_right
def test_a_right_answer_written_differently_earns_every_point(entry: Entry):
    report = judged(exercises()[entry.exercise], entry.answer, also_hidden=True)
    assert report.passed, report.worst
    assert report.points == report.exercise.points


@pytest.mark.parametrize("name", exercises())
def test_each_mistake_of_an_exercise_stands_in_the_bank_in_two_forms(name: str):
    forms = Counter(e.mistake for e in entries() if e.exercise == name and e.mistake != RIGHT)
    assert set(forms) == {mistake.name for mistake in exercises()[name].mistakes}
    assert all(count >= FORMS for count in forms.values()), forms
    assert len(forms) >= MISTAKES_AN_EXERCISE


@pytest.mark.parametrize("name", exercises())
def test_each_exercise_has_a_right_answer_written_differently(name: str):
    assert any(e.exercise == name and e.mistake == RIGHT for e in entries())


def test_the_bank_holds_as_many_wrong_answers_as_it_says():
    wrong = defaultdict(set)
    for entry in entries():
        wrong[entry.exercise].update({entry.mistake} - {RIGHT})
    assert sum(map(len, wrong.values())) >= WRONG_ANSWERS
    assert set(wrong) == set(exercises())
