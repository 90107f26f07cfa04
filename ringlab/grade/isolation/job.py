"""What a worker is asked, and what it answers; each as a JSON header and parts of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ringlab.grade.isolation.limits import Limits
from ringlab.grade.isolation.program import Source

FINISHED = "finished"


@dataclass(frozen=True)
class Job:
    """One question of one learner.

    Parameters
    ----------
    exercise : str
        Its name.
    cells : sequence of Source
        What to execute before the answer is called.
    cases : sequence of bytes
        Each a case, as plain data.
    altered : bytes
        A case, as plain data, to be tried once more with altered messages; or empty.
    limits : Limits
    """

    exercise: str
    cells: Sequence[Source]
    cases: Sequence[bytes]
    altered: bytes = b""
    limits: Limits = field(default_factory=Limits)

    def header(self) -> dict[str, Any]:
        """All but the cases, as JSON."""
        return {
            "exercise": self.exercise,
            "cells": [list(cell) for cell in self.cells],
            "limits": asdict(self.limits),
        }

    def parts(self) -> list[bytes]:
        """The cases: they are sent by themselves, so that no answer's process holds them early."""
        return [self.altered, *self.cases]

    @classmethod
    def received(cls, header: dict[str, Any]) -> Job:
        """The job that was sent, as yet without cases."""
        cells = [Source(title, text) for title, text in header["cells"]]
        return cls(header["exercise"], cells, (), b"", Limits(**header["limits"]))


@dataclass(frozen=True)
class Ended:
    """How the processes of a question ended.

    Attributes
    ----------
    how : str
        ``"finished"``, or one of the words of `ringlab.grade.isolation.endings`.
    message : str
        The same as a sentence, for the learner.
    observations : tuple of bytes
        One for each case that was tried, in order, and then the one with altered messages if the
        job asked for it. Untrusted.
    problems : tuple of str
        What went wrong while the cells were executed. Untrusted.
    output : str
        The end of what was printed. Untrusted.
    seconds : float
        Wall time.
    sealed : bool
        Whether the system kept the question's processes from files, network and other processes.
    """

    how: str
    message: str
    observations: tuple[bytes, ...]
    problems: tuple[str, ...]
    output: str
    seconds: float
    sealed: bool

    def header(self) -> dict[str, Any]:
        """All but the observations, as JSON."""
        told = dict(vars(self))
        del told["observations"]
        return told

    @classmethod
    def received(cls, header: dict[str, Any], parts: Sequence[bytes]) -> Ended:
        """The answer that was sent."""
        return cls(observations=tuple(parts), problems=tuple(header.pop("problems")), **header)
