"""Checks of the text of a stored lesson: like those of `form.py`, one rule each."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

from nbformat import NotebookNode

SECTION = re.compile(r"\b[Ss]ections? (\d+(?:(?:, | and |, and )\d+)*)(?!\.?\d)")
HEADING = re.compile(r"^## (\d+)\. ", re.MULTILINE)
LONG_SENTENCE = 40
"""Characters from which on a sentence that comes twice is a slip."""


def prose(notebook: NotebookNode) -> str:
    """All of the text between the code."""
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def without_code(text: str) -> str:
    """Text without code blocks and code spans, whose pipes and numbers mean something else."""
    return re.sub(r"```.*?```|`[^`\n]+`", "·", text, flags=re.DOTALL)


def sections_are_numbered(notebook: NotebookNode) -> list[str]:
    """Sections are numbered 1, 2, 3 ..."""
    numbers = [int(number) for number in HEADING.findall(prose(notebook))]
    return [] if numbers == list(range(1, len(numbers) + 1)) else [f"sections {numbers}"]


def sections_exist(notebook: NotebookNode) -> list[str]:
    """A section that the text speaks of is there."""
    text = without_code(prose(notebook))
    there = set(HEADING.findall(text))
    named = [n for group in SECTION.findall(text) for n in re.findall(r"\d+", group)]
    return [f"section {number}" for number in dict.fromkeys(named) if number not in there]


def no_sentence_twice(notebook: NotebookNode) -> list[str]:
    """No long sentence stands twice."""
    plain = re.sub(
        r"\[([^\]]*)\]\([^)]*\)|</?\w+>|^> ?", r"\1", prose(notebook), flags=re.MULTILINE
    )
    sentences = Counter(
        sentence.strip()
        for line in plain.splitlines()
        if not line.startswith("|")
        for sentence in re.split(r"(?<=[.?!])\s+", line)
    )
    return [s for s, count in sentences.items() if count > 1 and len(s) >= LONG_SENTENCE]


def tables_are_even(notebook: NotebookNode) -> list[str]:
    """Every row of a table has as many cells as its head."""
    wrong = []
    for is_table, lines in groupby(prose(notebook).splitlines(), lambda line: line[:1] == "|"):
        rows = [without_code(re.sub(r"\$[^$]*\$", "·", line)) for line in lines if is_table]
        wrong += [row for row in rows if row.count("|") != rows[0].count("|")]
    return wrong


def verdicts_say_where(notebook: NotebookNode) -> list[str]:
    """Each row on a claim of the article has a verdict, and names the section that measured it."""
    rows = re.findall(r"^\| [CBT]\d.*$", prose(notebook), re.MULTILINE)
    wrong = [] if rows else ["no table of verdicts"]
    for row in rows:
        columns = [column.strip() for column in row.strip("|").split("|")]
        if len(columns) < 4 or not columns[-2] or not SECTION.search(columns[-1]):
            wrong.append(row)
    return wrong
