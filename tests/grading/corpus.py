"""The attacks, one file each: which exercise it attacks, what it tries, and its code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "attacks"


@dataclass(frozen=True)
class Attack:
    """One attack.

    Attributes
    ----------
    name : str
    exercise : str
        The answer that it stands for.
    tries : str
        What it tries, in words.
    text : str
        A cell.
    """

    name: str
    exercise: str
    tries: str
    text: str

    def aimed(self, places: dict[str, str]) -> str:
        """Its code, with the places that it is after filled in."""
        return re.sub(r"@([A-Z]+)@", lambda found: places[found[1]], self.text)


def attacks() -> list[Attack]:
    """All attacks, by name."""
    return [_read(path) for path in sorted(FOLDER.glob("*.py"))]


def _read(path: Path) -> Attack:
    text = path.read_text(encoding="utf-8")
    exercise, tries = re.match(r"# attacks: (\w+)\n# tries: (.+)\n", text).groups()
    return Attack(path.stem, exercise, tries, text)
