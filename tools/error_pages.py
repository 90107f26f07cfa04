"""Write what the pages in docs/errors show: reports, what gloo did, and the index.

    python -m tools.error_pages

A page holds two programs: the first is wrong, the last is the mended one. The report of the
virtual world and the outcome on real gloo ranks stand between comments, and come from running the
first. A test runs all this and finds nothing to change.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ringlab import World
from ringlab.world import WorldError
from tools.blocks import with_block
from tools.error_programs import gloo_outcome, run, world_report

WRITER = "tools/error_pages.py"
FOLDER = Path(__file__).parents[1] / "docs" / "errors"
INDEX = FOLDER / "README.md"
_PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
_HEAD = re.compile(r"# (?P<title>.+)\n\n`(?P<error>\w+)` · (?P<summary>.+?)\n\n", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One page: a mistake, what the world says about it, and how to mend it.

    Attributes
    ----------
    path : Path
    title, summary : str
        The heading, and the sentence below it.
    error : str
        The class that the world raises.
    wrong, fixed : str
        The two programs.
    """

    path: Path
    title: str
    error: str
    summary: str
    wrong: str
    fixed: str

    @property
    def gloo(self) -> str | None:
        """What the page says that gloo does; None where it says that this is chance."""
        text = self.path.read_text(encoding="utf-8")
        if "On gloo it is chance" in text:
            return None
        block = text.split(f"<!-- gloo: written by {WRITER} -->\n```text\n")[1]
        return block.split("\n```")[0]


def read(path: Path) -> Page:
    """Take a page apart.

    Raises
    ------
    ValueError
        If it lacks its head or its two programs.
    """
    text = path.read_text(encoding="utf-8")
    head, programs = _HEAD.match(text), _PROGRAM.findall(text)
    if head is None or len(programs) != 2:
        raise ValueError(f"{path.name} needs a title, `Error` · a sentence, and two programs.")
    summary = " ".join(head["summary"].split())
    return Page(path, head["title"], head["error"], summary, *programs)


def pages() -> Iterator[Page]:
    """Every page, by the class of its error."""
    found = (read(path) for path in FOLDER.glob("*.md") if path != INDEX)
    yield from sorted(found, key=lambda page: (page.error, page.path.name))


def with_report(page: Page) -> str:
    """The page's text with the report of the virtual world as it is today."""
    text = page.path.read_text(encoding="utf-8")
    return with_block(text, "report", _fenced(world_report(page.wrong)), WRITER)


def with_gloo(page: Page) -> str:
    """The page's text with what gloo does today, unless that is chance."""
    text = page.path.read_text(encoding="utf-8")
    if page.gloo is None:
        return text
    return with_block(text, "gloo", _fenced(gloo_outcome(page.wrong)), WRITER)


def with_index(text: str) -> str:
    """The index with its table as the pages make it."""
    rows = ["| page | error | |", "| --- | --- | --- |"]
    rows += [f"| [{p.title}]({p.path.name}) | `{p.error}` | {p.summary} |" for p in pages()]
    return with_block(text, "pages", "\n".join(rows), WRITER)


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def main() -> int:
    """Rewrite the pages and the index."""
    for page in pages():
        page.path.write_text(with_report(page), encoding="utf-8")
        page.path.write_text(with_gloo(page), encoding="utf-8")
        try:
            run(page.fixed, World)
        except WorldError as error:
            print(f"{page.path.name}: the mended program fails: {error}", file=sys.stderr)
            return 1
        print(f"{page.path.name}: {page.error}; on gloo: {page.gloo or 'chance'}")
    INDEX.write_text(with_index(INDEX.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
