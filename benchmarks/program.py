"""The command line that benchmarks share: measure and store, or print what is stored."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks import stored


def parser_of(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of ``python -m benchmarks.NAME``, with the options that all have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="instead of the stored results")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    return parser


def run(
    name: str,
    doc: str | None,
    measured: Callable[[argparse.Namespace], stored.Data],
    tables: Callable[[stored.Data], str],
    add_options: Callable[[argparse.ArgumentParser], object],
) -> int:
    """Run a benchmark whose results are stored each time.

    Parameters
    ----------
    name : str
        Its module in this package.
    doc : str, optional
        What ``--help`` tells.
    measured : callable
        Measures, from the options chosen.
    tables : callable
        Writes what was measured as Markdown.
    add_options : callable
        Adds the options of its own to the parser.
    """
    parser = parser_of(name, doc)
    add_options(parser)
    chosen = parser.parse_args()
    path = chosen.json or stored.path_of(name)
    if not chosen.print:
        stored.write(measured(chosen), path)
    print(tables(stored.read(path)))
    return 0
