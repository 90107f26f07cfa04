"""What a check of this machine found, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How a finding is to be taken."""

    OK = "ok"
    ABSENT = "absent"
    BROKEN = "BROKEN"


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Parameters
    ----------
    subject : str
        What was looked at.
    status : Status
        Absent is no fault: this machine does without it. Broken is one.
    saying : str
        What was found.
    advice : str
        What to do, where something is missing.
    """

    subject: str
    status: Status
    saying: str
    advice: str = ""

    def __str__(self) -> str:
        line = f"{self.subject:<14} {self.status.value:<7} {self.saying}"
        return f"{line}\n{'':<22} -> {self.advice}" if self.advice else line


def ok(subject: str, saying: str) -> Finding:
    """Build a finding about what is there and works."""
    return Finding(subject, Status.OK, saying)


def absent(subject: str, saying: str, advice: str = "") -> Finding:
    """Build a finding about what this machine does without."""
    return Finding(subject, Status.ABSENT, saying, advice)


def broken(subject: str, saying: str, advice: str) -> Finding:
    """Build a finding about what should work and does not."""
    return Finding(subject, Status.BROKEN, saying, advice)
