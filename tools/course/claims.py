"""The ledger of claims: what the article says, and the cell that decides it.

What a claim says, its verdict and its lesson stand in notebooks/claims.toml. A code cell that
decides claims names them in its metadata, each with words that mark the line of its stored
output in which the measured value stands::

    "claims": {"C45": "own block first"}

A row of the article's comparison table (T) sums up other claims, and names those from which its
verdict follows. From ledger and lessons notebooks/claims.md is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import nbformat

from tools.course.manifest import FOLDER, Lesson, course, toml, written

LEDGER = FOLDER / "claims.toml"
LEDGER_PAGE = FOLDER / "claims.md"
VERDICTS = ("true", "true with conditions", "false", "fault")
NUMBER = re.compile(r"([CBT])(\d+)([a-e]?)")

HEAD = """\
# What the article says, and what is true

This course grew out of a popular article on ring attention. Each of its statements that can be
checked (C) and each fault of its listings (B) stands here, with the verdict, the cell that decides
it and what that cell measured when it was stored. *In [n]* is the n-th code cell of the lesson.
The rows of the article's comparison table (T) sum up other statements, from which their verdicts
follow.

This page is made by `python -m tools.course` from `claims.toml` and the stored notebooks.
"""


@dataclass(frozen=True)
class Claim:
    """One statement of the article (C..), fault of a listing (B..) or row of its table (T..)."""

    number: str
    says: str
    verdict: str
    lesson: str
    follows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """The cell that decides a claim, and the line of its output that tells."""

    claim: str
    lesson: Lesson
    place: int
    measured: str


def claims() -> list[Claim]:
    """All claims, in order.

    Raises
    ------
    ValueError
        If a verdict, a number, a lesson or a claim from which another follows is none.
    """
    found = [
        Claim(number, **{**fields, "follows": tuple(fields.get("follows", ()))})
        for number, fields in toml(LEDGER).items()
    ]
    numbers = {each.number for each in course()}
    measured = {claim.number for claim in found if not claim.follows}
    for claim in found:
        if claim.verdict not in VERDICTS or not NUMBER.fullmatch(claim.number):
            raise ValueError(f"{claim}: a verdict is one of {', '.join(VERDICTS)}.")
        if claim.lesson not in numbers:
            raise ValueError(f"{claim.number}: there is no lesson {claim.lesson}.")
        if not set(claim.follows) <= measured:
            raise ValueError(f"{claim.number} follows from {claim.follows}: not all are measured.")
    return sorted(found, key=_order)


def _order(claim: Claim) -> tuple[str, int, str]:
    match = NUMBER.fullmatch(claim.number)
    assert match
    return {"C": "1", "B": "2", "T": "3"}[match[1]], int(match[2]), match[3]


def output_lines(cell: nbformat.NotebookNode) -> Iterator[str]:
    """What a cell printed, showed in words, or raised, line by line."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield from output.text.splitlines()
        elif output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
        else:
            yield from output.data.get("text/plain", "").splitlines()


def decisions(lesson: Lesson, notebook: nbformat.NotebookNode | None = None) -> list[Decision]:
    """What the cells of a lesson decide.

    Raises
    ------
    ValueError
        If a cell names words that its stored output does not hold.
    """
    found = []
    cells = (notebook or lesson.read()).cells
    for cell in cells:
        for claim, words in cell.metadata.get("claims", {}).items():
            line = next((line for line in output_lines(cell) if words in line), None)
            if line is None:
                raise ValueError(f"{lesson.file} {cell.id}: no line of output holds {words!r}.")
            found.append(Decision(claim, lesson, cell.execution_count, line.strip()))
    return found


def decided() -> dict[str, Decision]:
    """The decision of every claim that a cell decides.

    Raises
    ------
    ValueError
        If two cells decide one claim.
    """
    found: dict[str, Decision] = {}
    for lesson in written():
        for decision in decisions(lesson):
            if decision.claim in found:
                first = found[decision.claim].lesson.file
                raise ValueError(f"{decision.claim} is decided in {first} and in {lesson.file}.")
            found[decision.claim] = decision
    return found


def undecided() -> list[Claim]:
    """The claims that no cell decides yet."""
    have = decided()
    return [claim for claim in claims() if not set(claim.follows or [claim.number]) <= set(have)]


def claims_page() -> str:
    """The whole of notebooks/claims.md."""
    have, lessons = decided(), {each.number: each for each in course()}
    parts = [HEAD]
    for title, letter in (("What it says", "C"), ("Faults of its listings", "B")):
        rows = ["| | in short | verdict | decided in | measured |", "|---|---|---|---|---|"]
        rows += [
            _row(claim, have.get(claim.number), lessons[claim.lesson])
            for claim in claims()
            if claim.number.startswith(letter)
        ]
        parts.append(f"## {title}\n\n" + "\n".join(rows) + "\n")
    rows = ["| | in short | verdict | follows from |", "|---|---|---|---|"]
    rows += [
        f"| {claim.number} | {claim.says} | {claim.verdict} | {', '.join(claim.follows)} |"
        for claim in claims()
        if claim.follows
    ]
    parts.append(
        "## Rows of its table that compares prefill and decode\n\n" + "\n".join(rows) + "\n"
    )
    return "\n".join(parts)


def _row(claim: Claim, decision: Decision | None, lesson: Lesson) -> str:
    if decision is None:
        state = "no cell yet" if lesson.written else "not written yet"
        where, measured = f"lesson {lesson.number}, {state}", ""
    else:
        place = f"In [{decision.place}]"
        where = f"[{decision.lesson.name}]({decision.lesson.file}), {place}"
        measured = _code(decision.measured)
    return f"| {claim.number} | {claim.says} | {claim.verdict} | {where} | {measured} |"


def _code(line: str, longest: int = 320) -> str:
    """A line of output as Markdown that a table can hold; the beginning of a long one."""
    line = line.removeprefix("Picture: ").replace("`", "'")
    if len(line) > longest:
        line = line[: line.rfind(" ", 0, longest)] + " …"
    return "`" + " ".join(line.replace("|", "\\|").split()) + "`"
