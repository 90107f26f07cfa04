"""The solutions are sources of nbgrader's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tools.exercises.files import EXERCISES, read, solutions


def nbgrader(folder: Path, *arguments: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments], cwd=folder, capture_output=True, text=True,
        timeout=110, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_nbgrader_makes_of_the_solutions_the_notebooks_that_we_make(tmp_path: Path):
    source = tmp_path / "source" / "rings"
    source.mkdir(parents=True)
    for path in solutions():
        shutil.copy(path, source)
    nbgrader(tmp_path, "generate_assignment", "rings")
    for path in solutions():
        theirs = nbformat.read(tmp_path / "release" / "rings" / path.name, as_version=4)
        for cell in theirs.cells:
            cell.metadata.get("nbgrader", {}).pop("checksum", None)
        ours = read(EXERCISES / path.name)
        assert [(c.id, c.source, c.metadata) for c in theirs.cells] == [
            (c.id, c.source, c.metadata) for c in ours.cells
        ]
