"""The table of reported faults is complete, names tests that exist, and the page shows it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tools import faults

SECTIONS = faults.sections()
REPORTS = {report.id: report for section in SECTIONS for report in section.reports}
EXPECTED = {
    *(f"A{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 16, 18)),
    *(f"B{n}" for n in (1, 2, 4, 7, 8, 9, 11, 12, 13)),
    *(f"C{n}" for n in (2, 3, 4, 6, 7, 9, 10, 13)),
    *(f"D{n}" for n in (1, 3, 4, 5, 6, 8, 10, 11, 12, 14, 16)),
    *(f"E{n}" for n in (1, 3, 4, 7, 8, 9, 11, 12, 13)),
    *(f"F{n}" for n in (1, 2, 3, 4, 6, 7, 8, 11, 12, 14, 15, 16)),
    *(f"G{n}" for n in (1, 2, 4, 5, 7)),
    *(f"H{n}" for n in (1, 2, 3, 5)),
    *(f"I{n}" for n in (1, 3, 4, 6, 7)),
    *(f"J{n}" for n in (1, 4, 5, 7, 8)),
}
MAY_BE_IMPOSSIBLE: set[str] = set()
"""The reports that may have a reason in place of a test: there is none."""


def written() -> dict[str, str]:
    """Every test function of the suite, by file and name, with what it is called in the table."""
    files = (faults.ROOT / "tests").rglob("test_*.py")
    return {
        f"{file.relative_to(faults.ROOT).as_posix()}::{node.name}": node.name
        for file in files
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def named(name: str) -> set[str]:
    """The reports that the name of a test begins with."""
    head = re.match(r"test_report_((?:[a-j]\d+_(?:and_)?)+)", name)
    return {word.upper() for word in re.findall(r"[a-j]\d+", head[1])} if head else set()


def test_every_report_of_the_survey_is_a_row_and_there_are_81() -> None:
    assert set(REPORTS) == EXPECTED
    assert len(EXPECTED) == 81
    assert [section.letter for section in SECTIONS] == list("ABCDEFGHIJ")


def test_every_test_that_the_table_names_is_written() -> None:
    listed = {test for report in REPORTS.values() for test in report.tests}
    searches = {section.search for section in SECTIONS}
    assert (listed | searches) - set(written()) == set()


def test_every_test_named_after_a_report_is_in_its_row() -> None:
    for test, name in written().items():
        if name.startswith("test_report_"):
            assert named(name), f"{test} names no report"
            for report in named(name):
                assert test in REPORTS[report].tests, f"{test} is missing in {report}"


def test_every_row_has_a_test_that_is_named_after_it_or_may_have_a_reason() -> None:
    for report in REPORTS.values():
        if report.kind == "impossible":
            assert report.id in MAY_BE_IMPOSSIBLE
            assert report.why
            assert not report.tests
        else:
            assert not report.why
            assert any(report.id in named(test.partition("::")[2]) for test in report.tests)


def test_what_is_not_supported_has_a_test_of_its_refusal() -> None:
    refused = [report for report in REPORTS.values() if report.kind == "refused"]
    assert {report.id for report in refused} >= {"D1", "D3", "D4", "D5", "D10", "I3", "I4"}
    for report in refused:
        assert any("refused" in test for test in report.tests), report.id


def test_every_report_says_where_it_is_known_from() -> None:
    for report in REPORTS.values():
        assert report.addresses or report.source
        assert all(re.match(r"https://github\.com/[^/]+/[^/]+", x) for x in report.addresses)
        assert report.symptom.endswith(".")
        assert "|" not in report.symptom


def test_the_page_is_what_the_table_makes() -> None:
    assert faults.PAGE.read_text(encoding="utf-8") == faults.page(), "run python -m tools.faults"


@pytest.mark.slow
def test_every_test_that_the_table_names_is_collected() -> None:
    listed = {test for report in REPORTS.values() for test in report.tests}
    listed |= {section.search for section in SECTIONS}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--full", *sorted(listed)]
    done = subprocess.run(command, cwd=faults.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert found == listed
