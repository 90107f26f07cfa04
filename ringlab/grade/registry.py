"""All exercises by name, in the order of the course."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from ringlab.grade import exercises
from ringlab.grade.exercise import Exercise


def lessons() -> dict[str, tuple[str, ...]]:
    """Names of the exercises of each lesson: ``{"03": ("rotation_table", ...)}``."""
    found = {}
    for module in iter_modules(exercises.__path__):
        package = import_module(f"{exercises.__name__}.{module.name}")
        found[module.name.removeprefix("lesson_")] = tuple(package.NAMES)
    return found


def exercise(name: str) -> Exercise:
    """Find an exercise.

    Parameters
    ----------
    name : str

    Returns
    -------
    Exercise

    Raises
    ------
    ValueError
        If there is none of that name; the message names the nearest, or all.
    """
    table = {entry: lesson for lesson, names in lessons().items() for entry in names}
    if name not in table:
        near = difflib.get_close_matches(str(name), table, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(table)}."
        raise ValueError(f"there is no exercise {name!r}; {known}")
    module = import_module(f"{exercises.__name__}.lesson_{table[name]}.{name}")
    found: Exercise = module.EXERCISE
    return found


def all_exercises() -> Iterator[Exercise]:
    """Every exercise, in the order of the course."""
    for names in lessons().values():
        for name in names:
            yield exercise(name)
