"""How far a learner is: a file of lines beside the notebooks.

Every attempt and every hint is one line of JSON, appended in one write. So two kernels may write at
once, nothing is ever rewritten, and a damaged line costs that line alone.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "progress.jsonl"


@dataclass
class Standing:
    """How one exercise stands.

    Attributes
    ----------
    attempts : int
    best : int
        The most points of an attempt.
    solved : bool
    hints : int
        Tiers of hints that were read.
    """

    attempts: int = 0
    best: int = 0
    solved: bool = False
    hints: int = 0


@dataclass(frozen=True)
class Progress:
    """The record of what was tried.

    Parameters
    ----------
    path : Path
        By default `FILE` in the working directory, which is where the notebook is.
    """

    path: Path = field(default_factory=lambda: Path(FILE))

    def attempt(self, exercise: str, points: int, solved: bool) -> None:
        """Note an attempt."""
        self._append({"exercise": exercise, "points": points, "solved": solved})

    def hint(self, exercise: str, tier: int) -> None:
        """Note that a tier of hints was read."""
        self._append({"exercise": exercise, "hint": tier})

    def standings(self) -> dict[str, Standing]:
        """How each exercise stands of which there is a record."""
        found: dict[str, Standing] = {}
        for entry in self._entries():
            standing = found.setdefault(entry["exercise"], Standing())
            if type(entry.get("hint")) is int:
                standing.hints = max(standing.hints, entry["hint"])
            elif type(entry.get("points")) is int:
                standing.attempts += 1
                standing.best = max(standing.best, entry["points"])
                standing.solved = standing.solved or entry.get("solved") is True
        return found

    def of(self, exercise: str) -> Standing:
        """How one exercise stands."""
        return self.standings().get(exercise, Standing())

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError:
            return  # a folder that cannot be written to costs the record, not the answer
        try:
            os.write(handle, (b"" if self._ends_whole(handle) else b"\n") + line)
        finally:
            os.close(handle)

    @staticmethod
    def _ends_whole(handle: int) -> bool:
        """Whether the file is empty or its last line is complete."""
        size = os.fstat(handle).st_size
        os.lseek(handle, max(0, size - 1), os.SEEK_SET)
        return size == 0 or os.read(handle, 1) == b"\n"

    def _entries(self) -> list[dict[str, Any]]:
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError:
            return []
        entries = []
        for line in lines:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict) and type(entry.get("exercise")) is str:
                entries.append(entry)
        return entries
