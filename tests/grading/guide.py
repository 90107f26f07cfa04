"""The instructor's guide, read as the tests need it: its commands, plans and tables."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

from tests.grading.notebooks import SOLUTIONS

NAME = re.compile(r"`(\w+)`")


def section(title: str) -> str:
    """The text below a heading."""
    text = (SOLUTIONS / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"the guide has no section {title!r}"
    return found[1]


def commands(title: str) -> list[str]:
    """What a section tells to run."""
    blocks = re.findall(r"```sh\n(.*?)```", section(title), re.S)
    return [line for block in blocks for line in block.splitlines()]


def places() -> list[str]:
    """The notebooks of the layout that the guide shows, below ``submissions/``."""
    block = re.search(r"```\nsubmissions/\n(.*?)```", section("Collecting"), re.S)
    assert block
    return block[1].split()


def files_of(command: str) -> dict[str, str]:
    """The options of a command, with their values."""
    words = shlex.split(command)
    return {word: value for word, value in pairwise(words) if word[:2] == "--"}


def exercises_planned(title: str) -> list[str]:
    """The exercises that a plan names."""
    return NAME.findall("".join(re.findall(r"^\|.*\|$", section(title), re.M)))


def mistakes_explained() -> list[tuple[list[str], list[str]]]:
    """Exercises, and mistakes by their names on the page, of each row of the table."""
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| .* \|$", section(MEANINGS), re.M)
    return [(NAME.findall(names), mistakes.split(", ")) for names, mistakes in rows]


MEANINGS = "What the commonest mistakes mean"
