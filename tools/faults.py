"""Write docs/faults.md: faults reported of other libraries, and what shows them absent here.

    python -m tools.faults

The page comes from tests/faults/reports.toml. A test runs this and finds nothing to change.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "faults" / "reports.toml"
PAGE = ROOT / "docs" / "faults.md"

_HEAD = """\
# Faults of the field

Ring and context-parallel attention has been written several times, and its users have reported
what went wrong. Each row below is such a public report, told in our words; beside it stand the
tests that show what happens here. What is marked *refused* is not supported: asking for it is an
error that names it and says what to use instead, and the tests show that.

A report is one example of a kind of fault. So each section also has a search: a test that draws
layouts, lengths, numbers of ranks and heads, dtypes, groups and orders of execution, and checks
what the reports of the section have in common. `make test` tries a few examples of each,
`make test-full` many.

This page is written by `tools/faults.py` from
[tests/faults/reports.toml](../tests/faults/reports.toml). The links lead to the reports as public
sources of facts; none of their words or code is used here.
"""


@dataclass(frozen=True)
class Report:
    """One reported fault; the fields are explained at the top of reports.toml."""

    id: str
    symptom: str
    addresses: tuple[str, ...]
    kind: Literal["right", "refused", "impossible"]
    tests: tuple[str, ...] = ()
    source: str = ""
    why: str = ""


@dataclass(frozen=True)
class Section:
    """Reports of one kind, and the test that searches for others of that kind."""

    letter: str
    title: str
    search: str
    reports: tuple[Report, ...]


def sections() -> list[Section]:
    """Read the data file."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    reports = [
        Report(id=name, **{key: _frozen(value) for key, value in row.items()})
        for name, row in data["reports"].items()
    ]
    return [
        Section(letter, row["title"], row["search"],
                tuple(report for report in reports if report.id[0] == letter))
        for letter, row in data["sections"].items()
    ]  # fmt: skip


def page() -> str:
    """The page in Markdown."""
    parts = [_HEAD]
    for section in sections():
        rows = [f"## {section.letter}. {section.title}", ""]
        rows += [f"Searched by: {_test(section.search)}.", ""]
        rows += ["| | report | what went wrong there | what shows that it does not here |"]
        rows += ["| --- | --- | --- | --- |"]
        rows += [_row(report) for report in section.reports]
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _row(report: Report) -> str:
    links = [f"[{_thread(address)}]({address})" for address in report.addresses]
    known = ", ".join([*links, *([report.source] if report.source else [])])
    shown = "; ".join(map(_test, report.tests)) or report.why
    mark = "*refused*: " if report.kind == "refused" else ""
    return f"| {report.id} | {known} | {report.symptom} | {mark}{shown} |"


def _thread(address: str) -> str:
    """An address in the short form ``repository#number``."""
    _, repository, *place = address.removeprefix("https://github.com/").split("/")
    return f"{repository}#{place[-1]}" if place else repository


def _test(test: str) -> str:
    """A test as the sentence that its name is, with a link to its file."""
    file, _, name = test.partition("::")
    sentence = re.sub(r"^test_(report_([a-j]\d+_(and_)?)+)?", "", name).replace("_", " ")
    return f"[{sentence}](../{file})"


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
