"""The frame of a page: it needs no network, and is readable on light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""No script and nothing fetched, even if a learner's text got past the escaping."""

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em;
       color: #1a1a1a; background: #fff }
table { border-collapse: collapse; margin: 0 0 1em }
td, th { padding: .25em .75em; text-align: left; vertical-align: top;
         border-bottom: 1px solid #bbb; overflow-wrap: break-word }
th { white-space: nowrap }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.bar { display: inline-block; height: .8em; min-width: 1px; background: #33628f }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f3f3f3; padding: .5em }
@media (prefers-color-scheme: dark) {
  body { color: #e8e8e8; background: #161616 }
  td, th { border-color: #555 }
  pre { background: #262626 }
  .bar { background: #7fb2e5 }
}
"""

Cell = str | int | float


def write(path: Path, title: str, parts: Iterable[str]) -> None:
    """Write a page of parts, which are HTML."""
    body = "\n".join(part for part in parts if part)
    path.write_text(
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n{body}\n</html>\n",
        encoding="utf-8",
        errors="replace",
    )


def paragraph(text: str) -> str:
    """A paragraph of text; nothing if there is none."""
    return f"<p>{escape(text)}</p>" if text else ""


def verbatim(lines: Sequence[str]) -> str:
    """Lines as they are; nothing if there are none."""
    return f"<pre>{escape(chr(10).join(lines))}</pre>" if lines else ""


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table of text and numbers; numbers stand to the right."""
    body = [[_cell(value) for value in row] for row in rows]
    if not body:
        return ""
    first = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = [first, *("".join(cells) for cells in body)]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def bars(head: Sequence[str], rows: Iterable[tuple[str, int]]) -> str:
    """A table with a bar beside each count."""
    counted = list(rows)
    most = max((count for _, count in counted), default=0) or 1
    lines = ["".join(f"<th>{escape(name)}</th>" for name in head)]
    for label, count in counted:
        bar = f'<span class="bar" style="width: {24 * count / most:.1f}em"></span>' if count else ""
        lines.append(f"<td>{escape(label)}</td>{_cell(count)}<td>{bar}</td>")
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def _cell(value: Cell) -> str:
    if isinstance(value, float):
        return f'<td class="n">{value:.1f}</td>'
    return f'<td class="n">{value}</td>' if isinstance(value, int) else f"<td>{escape(value)}</td>"
