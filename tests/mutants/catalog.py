"""Deliberate faults as data: one file a floor, with the tests that must notice them.

A floor's file, ``<floor>.toml``::

    tests = ["tests/cost/test_x.py::test_y"]   # those that notice most first

    [[mutant]]
    what = "one line that names the fault"
    file = "ringlab/cost/traffic.py"
    old = "text that occurs exactly once"
    new = "what stands there instead"
    survives = "why no test can notice it"   # only where that is so
    reported = "why the world ends the test first"   # likewise
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes
    ----------
    floor, what : str
    file : str
        Path from the root of the tree.
    old, new : str
        Text of the file, which must occur once, and what replaces it.
    survives : str
        Why no test can notice it; empty for all others.
    reported : str
        Why the virtual world's own report ends every test before an assertion can fail; empty
        for all others.
    """

    floor: str
    what: str
    file: str
    old: str
    new: str
    survives: str = ""
    reported: str = ""

    @property
    def expected(self) -> str:
        """The status with which it should end."""
        return "survived" if self.survives else "reported" if self.reported else "killed"

    def applied(self, text: str) -> str:
        """The text of the file with the fault in it.

        Raises
        ------
        LookupError
            If the old text does not occur exactly once: the mutant must follow the code.
        """
        found = text.count(self.old)
        if found != 1:
            raise LookupError(f"{self.what}: its old text occurs {found} times in {self.file}.")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Floor:
    """A floor of the library: its tests and its mutants."""

    name: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


def floors() -> dict[str, Floor]:
    """Every floor, by name."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.toml"))}


def _read(path: Path) -> Floor:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    mutants = tuple(Mutant(path.stem, **each) for each in data["mutant"])
    return Floor(path.stem, tuple(data["tests"]), mutants)
