"""Showing things in a notebook, and as text where there is none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ringlab.draw import Picture


@dataclass(frozen=True)
class Table:
    """A table of words.

    Attributes
    ----------
    head : sequence of str
    rows : sequence of sequence of str
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __repr__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def without_empty_columns(self) -> Table:
        """The table without the columns in which no row says anything."""
        kept = [n for n in range(len(self.head)) if any(row[n] for row in self.rows)]
        return Table([self.head[n] for n in kept], [[row[n] for n in kept] for row in self.rows])

    def _repr_html_(self) -> str:
        return f"<table>{html_row(self.head, 'th')}{''.join(map(html_row, self.rows))}</table>"


def html_row(cells: Sequence[str], tag: str = "td") -> str:
    """A row of an HTML table."""
    left = 'style="text-align: left"'  # a notebook's own style sheet puts cells to the right
    entries = "".join(f"<{tag} {left}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{entries}</tr>"


def show(thing: object) -> None:
    """Display something; a picture without a notebook is told in words."""
    shell = _shell()
    if shell is None:
        print(thing.alt if isinstance(thing, Picture) else thing)
        return
    from IPython.display import display

    display(thing)  # type: ignore[no-untyped-call]


def say(text: str) -> None:
    """Print a sentence or two."""
    print(text)


def new_cell(source: str) -> None:
    """Put source text into a new cell; print it where there are no cells."""
    shell = _shell()
    if shell is None or not hasattr(shell, "kernel"):
        print(source)
        return
    shell.set_next_input(source, replace=False)


def _shell() -> Any:
    """The running IPython, if this is one; nothing is imported to find out."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
