"""The glossary, notebooks/glossary.md, and the links of the lessons into it."""

from __future__ import annotations

import re

import nbformat

from tools.course.manifest import FOLDER

GLOSSARY = FOLDER / "glossary.md"
ENTRY = re.compile(r"^### (.+)\n\n(.+)\n", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(glossary\.md#([^)\s]+)\)")
BOLD = re.compile(r"(?<!\*)\*\*([^*\n]+)\*\*(?!\*)")
LONGEST_TERM = 3  # words; longer bold text is emphasis


def entries(text: str | None = None) -> dict[str, str]:
    """Terms and their meanings, in the order of the file."""
    return dict(ENTRY.findall(GLOSSARY.read_text(encoding="utf-8") if text is None else text))


def anchor(term: str) -> str:
    """The anchor that a code host gives to a heading."""
    return re.sub(r"[^\w\- ]", "", term.lower()).replace(" ", "-")


def paragraphs(notebook: nbformat.NotebookNode) -> list[str]:
    """The running text of a lesson: no tables, boxes, lists, headings, formulas or code."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"\$\$.*?\$\$|```.*?```", "", cell.source, flags=re.DOTALL)
            blocks = re.split(r"\n\s*\n", text)
            found += [b for b in blocks if not re.match(r"\s*([|>#*+<-]|\d+\.) ?(?!\*)", b)]
    return [re.sub(r"\$[^$]+\$|`[^`]+`", "·", block) for block in found]


def links(notebook: nbformat.NotebookNode) -> list[str]:
    """Anchors that the lesson links to, in order."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [target for _, target in LINK.findall(text)]


def explained(notebook: nbformat.NotebookNode) -> list[str]:
    """Terms in bold, as a lesson sets them where it explains them."""
    return [
        bold
        for paragraph in paragraphs(notebook)
        for bold in BOLD.findall(paragraph)
        if len(bold.split()) <= LONGEST_TERM
    ]


def faults(notebook: nbformat.NotebookNode, terms: list[str]) -> list[str]:
    """What is wrong with the terms of a lesson, in words.

    A term in bold must lead to the glossary, a link to an entry, and the first use of a term
    is a link.
    """
    known = {anchor(term): term for term in terms}
    wrong = [f"**{bold}** is in bold and leads nowhere" for bold in explained(notebook)
             if not LINK.search(bold)]  # fmt: skip
    wrong += [f"#{target} is no entry" for target in links(notebook) if target not in known]
    return wrong + [f"{term!r} is used before its link" for term in _used_early(notebook, known)]


def _used_early(notebook: nbformat.NotebookNode, known: dict[str, str]) -> list[str]:
    text = "\n\n".join(paragraphs(notebook))
    early = []
    for target, term in known.items():
        place = text.find(f"(glossary.md#{target})")
        before = LINK.sub("", text[: text.rfind("[", 0, place)] if place >= 0 else text)
        if any(_uses(name, before) for name in term.split(", ")):
            early.append(term)
    return early


def _uses(name: str, text: str) -> bool:
    flags = re.IGNORECASE if name.islower() else 0
    return re.search(rf"(?<![\w-]){re.escape(name)}s?(?![\w-])", text, flags) is not None
