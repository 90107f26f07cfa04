"""The course as notebooks/course.toml describes it."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parents[2] / "notebooks"
MANIFEST = FOLDER / "course.toml"


@dataclass(frozen=True)
class Lesson:
    """One lesson; the fields are explained at the top of course.toml."""

    number: str
    file: str
    title: str
    minutes: int
    minutes_for_tasks: int
    needs: str
    after: tuple[str, ...]
    gpus: str
    exercises: tuple[str, ...]
    able: str

    @property
    def path(self) -> Path:
        """Where its notebook is, or will be."""
        return FOLDER / self.file

    @property
    def written(self) -> bool:
        """Whether there is a notebook."""
        return self.path.exists()

    @property
    def name(self) -> str:
        """Number and title, as in a heading."""
        return f"{self.number} {self.title}"

    def read(self) -> nbformat.NotebookNode:
        """The notebook as it is stored."""
        return nbformat.read(self.path, as_version=4)


def toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def lesson(fields: dict[str, Any]) -> Lesson:
    """Make a lesson of one entry of the manifest.

    Raises
    ------
    ValueError
        If a field is missing or has no meaning, or `gpus` is neither "none" nor "optional".
    """
    wanted = [field.name for field in dataclasses.fields(Lesson)]
    if sorted(fields) != sorted(wanted):
        raise ValueError(f"{fields.get('number')}: a lesson has the fields {', '.join(wanted)}.")
    if fields["gpus"] not in ("none", "optional"):
        raise ValueError(f'gpus is "none" or "optional", not {fields["gpus"]!r}.')
    lists = {key: tuple(fields[key]) for key in ("after", "exercises")}
    return Lesson(**{**fields, **lists})


def course(path: Path = MANIFEST) -> list[Lesson]:
    """All lessons, in order, those that are not written yet included.

    Raises
    ------
    ValueError
        If an entry is not a lesson, or the numbers are not in order.
    """
    lessons = [lesson(fields) for fields in toml(path)["lesson"]]
    numbers = [each.number for each in lessons]
    if numbers != [f"{place:02d}" for place in range(len(lessons))]:
        raise ValueError(f"lessons are numbered 00, 01, 02 ...; got {numbers}.")
    for each in lessons:
        later = [number for number in each.after if number >= each.number]
        if later or not set(each.after) <= set(numbers):
            raise ValueError(f"{each.name} comes after {each.after}: only earlier lessons can.")
    return lessons


def written(lessons: list[Lesson] | None = None) -> list[Lesson]:
    """The lessons that there are."""
    return [each for each in lessons or course() if each.written]
