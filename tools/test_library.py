"""Run the library's tests in two pytests at once: those that start programs, and the rest.

The first, which start real ranks or a browser, mostly wait; the others compute. Together they
take little more than half the time. Arguments are handed to both. What the first prints comes
when the second is done.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

STARTS_PROGRAMS = "processes or browser"
NOTHING_COLLECTED = 5
"""Exit status of a pytest that found no test: fine for one of the two, as with ``-k``."""


def command(marked: str, report: Path, arguments: list[str]) -> list[str]:
    """Build the command line of one of the two."""
    pytest = [sys.executable, "-m", "pytest"]
    return [*pytest, "-m", marked, f"--junitxml={report}", *arguments]


def verdict(first: int, second: int) -> int:
    """Exit status of both: 0 if one passed and the other passed or had nothing to do."""
    if NOTHING_COLLECTED in (first, second):
        return second if first == NOTHING_COLLECTED else first
    return first or second


def main(reports: str, *arguments: str) -> int:
    """Run both; the reports go to a folder."""
    folder = Path(reports)
    others = command(f"not ({STARTS_PROGRAMS})", folder / "library.xml", list(arguments))
    processes = command(STARTS_PROGRAMS, folder / "processes.xml", list(arguments))
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        background = subprocess.Popen(processes, stdout=said, stderr=subprocess.STDOUT)
        try:
            first = subprocess.run(others, check=False).returncode
            second = background.wait()
        finally:
            background.kill()
            background.wait()
            said.seek(0)
            print("\n== the tests that start programs", said.read(), sep="\n", flush=True)
    return verdict(first, second)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
