"""Blocks of a Markdown file that a tool writes: what stands between two comments."""

from __future__ import annotations

import re


def with_block(text: str, name: str, body: str, writer: str) -> str:
    """The text with what stands between the two comments of a block replaced.

    Parameters
    ----------
    text : str
    name, writer : str
        The block begins with ``<!-- name: written by writer -->`` and ends with
        ``<!-- end of name -->``.
    body : str
        What shall stand between them.

    Raises
    ------
    ValueError
        If the text has no such block.
    """
    start, end = f"<!-- {name}: written by {writer} -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"there is no {start} ... {end}")
    return pattern.sub(lambda _: f"{start}\n{body}\n{end}", text)
