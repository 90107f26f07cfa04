"""A copy of the tree in which faults are put one after the other, and its tests are run."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.catalog import Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("ringlab", "tests", "tools", "conftest.py", "pyproject.toml")
OPTIONS = ("-q", "-p", "tests.mutants.watch", "-p", "no:cacheprovider", "-o", "timeout=60",
           "-m", "not processes and not browser and not slow")  # fmt: skip
LIMIT = 600.0
"""Seconds after which the tests of one mutant are ended."""


@dataclass(frozen=True)
class Verdict:
    """What the tests made of a fault.

    Attributes
    ----------
    status : str
        ``"killed"`` by a failed assertion; ``"reported"`` by the virtual world only;
        ``"error"``, ``"collection"`` or ``"timeout"`` where the tests were red for another reason;
        ``"survived"`` where they were green.
    by : str
        The test that failed, and how.
    seconds : float
    """

    status: str
    by: str
    seconds: float


class Tree:
    """A temporary copy of the sources and tests, and a process that runs them.

    Parameters
    ----------
    folder : Path
        Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=_unneeded)
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, folder / name)
        environment = {**os.environ, "CI": "1", "OMP_NUM_THREADS": "1",
                       "MUTANT_REPORT": str(folder / "report.jsonl")}  # fmt: skip
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("preloaded.py"))], cwd=folder,
            env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def judge(self, mutant: Mutant, tests: Sequence[str]) -> Verdict:
        """Put one fault in, run tests until an assertion fails, and take the fault out.

        Raises
        ------
        LookupError
            If the text that it changes is not there.
        """
        path = self.folder / mutant.file
        before = path.read_text(encoding="utf-8")
        try:
            self._write(path, mutant.applied(before))
            return self.run(tests)
        finally:
            self._write(path, before)

    def run(self, tests: Sequence[str]) -> Verdict:
        """Run tests on the tree as it is."""
        report, output = self.folder / "report.jsonl", self.folder / "output.txt"
        report.unlink(missing_ok=True)
        began = time.monotonic()
        code = self._pytest([*OPTIONS, *tests], output)
        seconds = time.monotonic() - began
        if code is None:
            return Verdict("timeout", f"no end after {LIMIT:g} s", seconds)
        if code == 0:
            return Verdict("survived", "", seconds)
        failures = _failures(report)
        for kind, status in STATUS.items():
            for failure in failures:
                if failure["kind"] == kind:
                    return Verdict(status, f"{failure['test']}: {failure['text']}", seconds)
        return Verdict("error", output.read_text(errors="replace")[-3000:], seconds)

    def close(self) -> None:
        """End the process that runs the tests."""
        self._server.kill()
        self._server.communicate()

    def _pytest(self, arguments: Sequence[str], output: Path) -> int | None:
        """Exit status of pytest in this tree, or None if it met its limit."""
        request = {"folder": str(self.folder), "arguments": arguments, "output": str(output),
                   "limit": LIMIT}  # fmt: skip
        to, back = self._server.stdin, self._server.stdout
        assert to is not None
        assert back is not None
        to.write(json.dumps(request) + "\n")
        to.flush()
        answer = back.readline()
        if not answer:
            raise RuntimeError("the process that runs the tests has ended")
        code: int | None = json.loads(answer)["code"]
        return code

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """Write a module, and drop what Python has compiled of it before."""
        path.write_text(text, encoding="utf-8")
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


STATUS = {
    "assertion": "killed",
    "report": "reported",
    "timeout": "timeout",
    "error": "error",
    "collection": "collection",
}
"""From what the plugin notes to the status, the one that counts most first."""


def _failures(report: Path) -> list[dict[str, str]]:
    if not report.exists():
        return []
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]


def _unneeded(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("__pycache__", "exercises", "notebooks")]
