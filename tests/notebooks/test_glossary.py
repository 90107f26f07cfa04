"""The glossary explains every term of the lessons, and nothing else."""

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from tools.course import glossary
from tools.course.manifest import written

LESSONS = written()
TERMS = list(glossary.entries())


@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.file for lesson in LESSONS])
def test_a_lesson_links_its_terms_where_it_uses_them_first(lesson):
    assert glossary.faults(lesson.read(), TERMS) == []


def test_every_entry_is_used_by_a_lesson():
    used = {target for lesson in LESSONS for target in glossary.links(lesson.read())}
    assert [term for term in TERMS if glossary.anchor(term) not in used] == []


def test_each_term_is_explained_once_in_order_in_a_few_sentences():
    text = glossary.GLOSSARY.read_text(encoding="utf-8")
    assert text.count("\n### ") == len(TERMS) > 30
    assert sorted(TERMS, key=str.lower) == TERMS
    assert [t for t, meaning in glossary.entries().items() if not 20 < len(meaning) < 400] == []


def faults(*sources):
    return glossary.faults(
        new_notebook(cells=[new_markdown_cell(s) for s in sources]), ["hop", "key, value", "LSE"]
    )


def test_terms_that_lead_to_their_entries_are_fine():
    assert (
        faults("A **[hop](glossary.md#hop)** is short.", "Two hops. A **whole lot of bold words**.")
        == []
    )
    assert faults("Each [value](glossary.md#key-value) has a key.") == []


def test_a_term_without_an_entry_is_found():
    assert faults("A **frobnication** is new.") == ["**frobnication** is in bold and leads nowhere"]
    assert faults("See [jump](glossary.md#jump).") == ["#jump is no entry"]


def test_a_term_that_is_used_before_its_link_is_found():
    early = ["'hop' is used before its link"]
    assert faults("Count the hops.", "A [hop](glossary.md#hop) is short.") == early
    assert faults("Count the hops.") == early
    assert faults("A key.", "The [value](glossary.md#key-value).") == [
        "'key, value' is used before its link"
    ]


def test_tables_formulas_boxes_and_code_use_no_terms():
    assert (
        faults(
            "| **hop** | a hop |\n|---|---|",
            "> **Predict.** Which hop?",
            "`hop` and $hop$",
            "## A hop",
        )
        == []
    )


def test_abbreviations_are_told_by_their_capitals():
    assert faults("Nobody else.") == []
    assert faults("The LSEs.") == ["'LSE' is used before its link"]
