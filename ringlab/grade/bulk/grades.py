"""Grades: what a question and a student earned, as data that can be kept and read again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Grade:
    """What one answer earned.

    Attributes
    ----------
    exercise : str
    points, most : int
    earned : dict of str to int
        Points by check.
    state : str
        ``"right"``, ``"partly"``, ``"wrong"``, ``"not written"``, ``"missing"``, or how its
        processes ended, such as ``"time"`` or ``"crash"``.
    message : str
        A sentence on the state.
    mistake : str
        Name of the mistake that explains it, or empty.
    hint : str
        What to tell the learner.
    shown : tuple of str
        What was tried, expected and what came, in a case that may be shown.
    notes : tuple of str
        What went wrong while the cells were executed.
    sealed : bool
        Whether the system kept its processes from files, network and other processes.
    """

    exercise: str
    points: int
    most: int
    earned: dict[str, int]
    state: str
    message: str = ""
    mistake: str = ""
    hint: str = ""
    shown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    sealed: bool = True


@dataclass(frozen=True)
class Sheet:
    """All grades of one student.

    Attributes
    ----------
    student : str
    digest : str
        Of the notebooks and of the exercises they were graded against.
    grades : tuple of Grade
        One for each exercise.
    remarks : tuple of str
        On the notebooks as they arrived.
    """

    student: str
    digest: str
    grades: tuple[Grade, ...]
    remarks: tuple[str, ...] = field(default=())

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(grade.points for grade in self.grades)

    @property
    def most(self) -> int:
        """The most that could be earned."""
        return sum(grade.most for grade in self.grades)

    def as_json(self) -> dict[str, Any]:
        """The sheet as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Sheet:
        """The sheet that `as_json` gave."""
        grades = tuple(
            Grade(**{**g, "shown": tuple(g["shown"]), "notes": tuple(g["notes"])})
            for g in data["grades"]
        )
        return cls(data["student"], data["digest"], grades, tuple(data["remarks"]))
