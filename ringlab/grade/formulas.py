"""Exercises that ask for a formula: cases of named numbers, and what a wrong formula gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Shows
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives

Formula = Callable[..., Plain]
"""A function of a case's options, given by name."""


def cases_of(*names: str) -> Callable[..., Case]:
    """Make a maker of cases: a title, then the values of these options, in their order."""

    def case(title: str, *values: Plain) -> Case:
        return Case(title, options=dict(zip(names, values, strict=True)))

    return case


def observe(answer: Any, case: Case) -> Observation:
    """Call the answer with the options of the case, in their order."""
    return alone(answer, *case.options.values())


def result(formula: Formula) -> Callable[[Case], tuple[Plain, ...]]:
    """What the answer returns if it computes `formula`."""
    return lambda case: (formula(**case.options),)


def computes(wrong: Formula, right: Formula) -> Shows:
    """Shows if the answer computes another formula."""
    return gives(result(wrong), result(right))


def up(number: int, parts: int) -> int:
    """The largest of `parts` shares of a number, as equal as whole numbers allow."""
    return -(-number // parts)
