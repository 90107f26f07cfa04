"""An exercise as data: what is asked, in which cases it is tried, and what is looked at."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ringlab.draw import Picture
from ringlab.grade.case import Case
from ringlab.grade.forbidden import ANSWERS, withheld
from ringlab.grade.observation import Failure, Observation
from ringlab.grade.observe import nothing_happened


@dataclass(frozen=True)
class Outcome:
    """What one check found in one case.

    Attributes
    ----------
    passed : bool
    expected, got : str
        In words and numbers, for the learner; `got` says where the two differ most.
    looked : bool
        False if the check had nothing to look at, as after a failed run. It is then not passed.
    """

    passed: bool
    expected: str
    got: str
    looked: bool = True


Look = Callable[[Case, Observation], Outcome]
Shows = Callable[[Case, Observation], "bool | None"]


@dataclass(frozen=True)
class Check:
    """One thing that is looked at, and its points.

    Parameters
    ----------
    name : str
        A word or two: ``"numbers"``, ``"bytes"``, ``"peak memory"``.
    points : int
        Given when the check passes in every case.
    look : callable
        ``look(case, observation) -> Outcome``. It is called for observations without failure
        only.
    after : str
        Name of an earlier check without which this one means nothing: where that one failed,
        this one is not passed either. So an answer that does nothing earns nothing.
    """

    name: str
    points: int
    look: Look
    after: str = ""


@dataclass(frozen=True)
class Mistake:
    """A mistake that people make, and how it shows.

    Parameters
    ----------
    name : str
        As in the bank of wrong answers, for example ``"last_hop_not_skipped"``.
    hint : str
        What the learner is told: what happened, why that is wrong, where to look. Not the code.
    shows : callable
        ``shows(case, observation)``: True if what came is what this mistake gives, False if it
        is not, None if the case cannot tell. It sees numbers, traffic and failures; never the
        text of the answer.
    """

    name: str
    hint: str
    shows: Shows


@dataclass(frozen=True)
class Exercise:
    """An exercise.

    Parameters
    ----------
    name : str
        As in ``check("ring_forward", ...)``.
    lesson : str
        Two digits.
    title : str
    minutes : int
    difficulty : int
        1, a warm-up, to 5.
    objective : str
        What one can do afterwards, as a sentence.
    signature : str
        What the answer must define: ``"ring_forward(q, k, v)"``, or ``"class Cache"``.
    hints : tuple of str
        Two tiers: where to look, and then how.
    checks : tuple of Check
        In the order in which they are shown; the first ones look at the form.
    cases : tuple of Case
        Those that everybody may see.
    observe : callable
        ``observe(answer, case) -> Observation``: runs the answer. In the bulk grader it runs in
        the learner's process.
    mistakes : tuple of Mistake
        The most specific first: of several that show, the first is named.
    draw : callable, optional
        ``draw(observation)`` makes a picture of the learner's own run, or None.
    forbids : tuple of str
        Packages and modules of this library whose functions refuse to run while the answer does,
        since they are what it asks for.
    """

    name: str
    lesson: str
    title: str
    minutes: int
    difficulty: int
    objective: str
    signature: str
    hints: tuple[str, str]
    checks: tuple[Check, ...]
    cases: tuple[Case, ...]
    observe: Callable[[Any, Case], Observation]
    mistakes: tuple[Mistake, ...]
    draw: Callable[[Observation], Picture | None] | None = field(default=None)
    forbids: tuple[str, ...] = ANSWERS

    @property
    def answer(self) -> str:
        """The name that the answer must define."""
        return self.signature.removeprefix("class ").split("(")[0].strip()

    @property
    def points(self) -> int:
        """The most that can be earned."""
        return sum(check.points for check in self.checks)

    def mistake(self, name: str) -> Mistake:
        """The mistake of that name."""
        found = next((m for m in self.mistakes if m.name == name), None)
        if found is None:
            known = ", ".join(m.name for m in self.mistakes)
            raise ValueError(f"{self.name} knows no mistake {name!r}; it has {known}.")
        return found

    def look(self, answer: Any, case: Case) -> Observation:
        """Run `observe`, after a look at whether the answer can be called at all."""
        wants_class = self.signature.startswith("class ")
        kind = "class" if wants_class else "function"
        if inspect.isclass(answer) if wants_class else callable(answer):
            with withheld(self.forbids):
                return self.observe(answer, case)
        message = (
            f"the answer is {type(answer).__name__} {answer!r:.60}, not a {kind}. Pass the {kind} "
            f"itself: check({self.name!r}, {self.answer})."
        )
        return nothing_happened(case.world_size, Failure("NotCallable", message))
