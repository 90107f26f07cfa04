"""Print one closing line for several runs of pytest, from the reports they wrote."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def total(reports: list[Path]) -> tuple[int, int, int]:
    """Add up passed, failed and skipped over JUnit reports."""
    tests = failed = skipped = 0
    for report in reports:
        for suite in ElementTree.parse(report).iter("testsuite"):
            tests += int(suite.get("tests", 0))
            failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped += int(suite.get("skipped", 0))
    return tests - failed - skipped, failed, skipped


def main() -> None:
    """Read the reports of the folder that is named on the command line."""
    passed, failed, skipped = total(sorted(Path(sys.argv[1]).glob("*.xml")))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if not passed:
        raise SystemExit("no test ran: run `make test` or `make test-full` first")


if __name__ == "__main__":
    main()
