"""The ledger of claims: complete, decided by cells, and generated."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.course import claims
from tools.course.manifest import written

LESSONS = written()


def numbers(letter):
    listed = (re.fullmatch(r"([CBT])(\d+)[a-e]?", claim.number) for claim in claims.claims())
    return {int(match[2]) for match in listed if match[1] == letter}


def test_all_statements_faults_and_rows_of_the_table_are_listed():
    assert numbers("C") == set(range(1, 57))
    assert numbers("B") == set(range(1, 13))
    assert numbers("T") == set(range(1, 7))
    assert len([claim for claim in claims.claims() if not claim.follows]) == 72


def test_every_claim_is_decided_by_a_cell():
    assert [claim.number for claim in claims.undecided()] == []
    assert len(claims.decided()) == 72


def test_a_claim_that_no_cell_decides_would_be_noticed_and_so_would_what_follows_from_it(
    monkeypatch,
):
    have = {number: found for number, found in claims.decided().items() if number != "C24"}
    monkeypatch.setattr(claims, "decided", lambda: have)
    assert [claim.number for claim in claims.undecided()] == ["C24", "T1"]


def test_a_claim_is_decided_in_the_lesson_that_the_ledger_names():
    lessons = {claim.number: claim.lesson for claim in claims.claims()}
    assert {
        n: d.lesson.number for n, d in claims.decided().items() if lessons[n] != d.lesson.number
    } == {}


@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.file for lesson in LESSONS])
def test_a_lesson_says_the_verdict_on_what_it_decides(lesson):
    text = "\n".join(c.source for c in lesson.read().cells if c.cell_type == "markdown")
    rows = "\n".join(re.findall(r"^\| [CB]\d.*$", text, re.M))
    for decision in claims.decisions(lesson):
        assert re.search(rf"\b{decision.claim}\b", rows), decision.claim


def test_the_page_is_the_one_that_is_made_of_ledger_and_lessons():
    assert claims.LEDGER_PAGE.read_text(encoding="utf-8") == claims.claims_page()


def with_claim(words, text="error 7.5e-08\n"):
    cell = new_code_cell("run()", execution_count=4, metadata={"claims": {"C22": words}})
    cell.outputs = [new_output("stream", text=text), new_output("error", ename="E", evalue="no")]
    return new_notebook(cells=[cell])


def test_what_was_measured_is_read_from_the_stored_output():
    found = claims.decisions(LESSONS[0], with_claim("error"))
    assert [(d.claim, d.place, d.measured) for d in found] == [("C22", 4, "error 7.5e-08")]
    assert claims.decisions(LESSONS[0], with_claim("E: no"))[0].measured == "E: no"


def test_a_measurement_that_is_gone_is_noticed():
    with pytest.raises(ValueError, match="no line of output holds 'difference'"):
        claims.decisions(LESSONS[0], with_claim("difference"))


def test_a_claim_that_two_cells_decide_is_noticed(monkeypatch):
    twice = claims.decisions(LESSONS[0], with_claim("error"))
    monkeypatch.setattr(claims, "decisions", lambda lesson: twice)
    with pytest.raises(ValueError, match="C22 is decided in"):
        claims.decided()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"verdict": "maybe"}, "a verdict is one of"),
        ({"lesson": "09"}, "no lesson 09"),
        ({"follows": ["C99"]}, "not all are measured"),
    ],
)
def test_a_ledger_that_makes_no_sense_is_refused(monkeypatch, change, said):
    entry = {"says": "something", "verdict": "true", "lesson": "02", **change}
    monkeypatch.setattr(claims, "toml", lambda path: {"C1": entry})
    with pytest.raises(ValueError, match=said):
        claims.claims()


def test_a_page_survives_pipes_and_backquotes_in_an_output():
    notebook = nbformat.from_dict(with_claim("waits", "a | b waits at `x.wait()`\n"))
    decision = claims.decisions(LESSONS[0], notebook)[0]
    row = claims._row(claims.claims()[0], decision, LESSONS[0])
    assert row.count("`") == 2
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
