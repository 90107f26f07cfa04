"""Rewrite what is generated in notebooks/."""

from __future__ import annotations

import sys

import nbformat

from tools.course.claims import LEDGER_PAGE, claims_page
from tools.course.manifest import written
from tools.course.tables import with_head


def main() -> int:
    """Rewrite the head of each lesson and the page of claims; say what changed."""
    for lesson in written():
        notebook = lesson.read()
        head = with_head(notebook.cells[0].source, lesson)
        if head != notebook.cells[0].source:
            notebook.cells[0].source = head
            nbformat.write(notebook, lesson.path)
            print(f"{lesson.file}: the table at its head")
    page = claims_page()
    if not LEDGER_PAGE.exists() or LEDGER_PAGE.read_text(encoding="utf-8") != page:
        LEDGER_PAGE.write_text(page, encoding="utf-8")
        print(LEDGER_PAGE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
