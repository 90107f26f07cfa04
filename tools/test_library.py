"""Run the library's tests in two pytests at once, of which each keeps a core busy.

One takes those that start real ranks or a browser, which often wait, and some folders of others
to balance the two; the other takes the rest. Arguments are handed to both. What the first
prints comes when the second is done.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ASIDE = "processes or browser or aside"
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
    others = command(f"not ({ASIDE})", folder / "library.xml", list(arguments))
    beside = command(ASIDE, folder / "beside.xml", list(arguments))
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        background = subprocess.Popen(beside, stdout=said, stderr=subprocess.STDOUT)
        try:
            first = subprocess.run(others, check=False).returncode
            second = background.wait()
        finally:
            background.kill()
            background.wait()
            said.seek(0)
            print("\n== the tests that ran beside these", said.read(), sep="\n", flush=True)
    return verdict(first, second)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
