"""Finding the submissions of a class in a folder."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ringlab.grade.bulk.submission import LARGEST, Submission, read


@dataclass(frozen=True)
class Student:
    """One learner's notebooks.

    Attributes
    ----------
    name : str
        Of the folder or file, as it was handed in.
    paths : tuple of Path
    """

    name: str
    paths: tuple[Path, ...]

    @cached_property
    def submissions(self) -> tuple[Submission, ...]:
        """The notebooks, read."""
        return tuple(read(path) for path in self.paths)

    @cached_property
    def digest(self) -> str:
        """Changes when a notebook does."""
        total = hashlib.sha256()
        for path in self.paths:
            total.update(os.fsencode(path.name) + b"\0")
            with suppress(OSError), path.open("rb") as file:
                total.update(file.read(LARGEST + 1))
        return total.hexdigest()


def find(folder: Path) -> list[Student]:
    """The students of a folder: each a folder with notebooks anywhere below it, or one notebook.

    nbgrader's ``submitted/<student>/<assignment>/<notebook>.ipynb`` is such a folder. Links are
    not followed, and what lies in ``.ipynb_checkpoints`` is left out.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    list of Student
        By name.

    Raises
    ------
    ValueError
        If the folder is not there, or holds no student.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder. Give the folder that holds a folder a student.")
    found: dict[str, list[Path]] = {}
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() or entry.name.startswith("."):
            continue
        if entry.is_dir():
            found.setdefault(_printable(entry.name), []).extend(_notebooks(entry))
        elif entry.suffix == ".ipynb" and entry.is_file():
            found.setdefault(_printable(entry.stem), []).append(entry)
    if not found:
        raise ValueError(
            f"{folder} holds no submissions. It should hold a folder for each student, or a "
            "notebook for each."
        )
    return [Student(name, tuple(paths)) for name, paths in sorted(found.items())]


def _notebooks(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*.ipynb"))
        if path.is_file() and not path.is_symlink() and ".ipynb_checkpoints" not in path.parts
    ]


def _printable(name: str) -> str:
    """A file's name as text that every table and page can hold."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
