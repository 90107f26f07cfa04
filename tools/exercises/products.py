"""Every file that follows from the solutions, with the text that it must have."""

from __future__ import annotations

from pathlib import Path

from tools.exercises.files import EXERCISES, STUBS, lesson_of, read, solutions, text_of
from tools.exercises.form import stored
from tools.exercises.student import stubs, student_notebook


def products() -> dict[Path, str]:
    """The stored solutions, the exercises and the stubs, by path."""
    made: dict[Path, str] = {}
    for path in solutions():
        solution = stored(read(path))
        made[path] = text_of(solution)
        made[EXERCISES / path.name] = text_of(student_notebook(solution))
        for name, source in stubs(solution).items():
            made[STUBS / f"lesson_{lesson_of(path)}" / f"{name}.txt"] = source + "\n"
    return made


def left_over(made: dict[Path, str]) -> list[Path]:
    """Files in the folders of products that follow from no solution."""
    present = [*EXERCISES.glob("*.ipynb"), *STUBS.glob("*/*.txt")]
    return [path for path in present if path not in made]
