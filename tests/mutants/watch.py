"""A pytest plugin: how each test failed, until the first failed assertion.

It writes one line of JSON a failure into the file that ``MUTANT_REPORT`` names.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

ROOT = Path.cwd()


def kind_of(error: BaseException) -> str:
    """Whether an assertion failed, the virtual world reported the program, or something else."""
    from ringlab.world import WorldError

    if isinstance(error, pytest.fail.Exception):  # a pytest.raises that saw nothing raised
        return "timeout" if str(error).startswith("Timeout") else "assertion"
    if isinstance(error, AssertionError):
        return "assertion"
    inner = [*getattr(error, "exceptions", ()), *filter(None, [error.__cause__])]
    kinds = {kind_of(each) for each in inner}
    if "assertion" in kinds:
        return "assertion"
    return "report" if isinstance(error, WorldError) or "report" in kinds else "error"


def note(kind: str, test: str, text: str) -> None:
    line = json.dumps({"kind": kind, "test": test, "text": text[:300]})
    with open(os.environ["MUTANT_REPORT"], "a", encoding="utf-8") as report:
        report.write(line + "\n")


def pytest_sessionstart(session: pytest.Session) -> None:
    import ringlab

    if not Path(ringlab.__file__).is_relative_to(ROOT):
        sys.exit(f"the tests would run the ringlab in {ringlab.__file__}")
    # the first counterexample is enough; to make it smaller takes many runs more
    settings.register_profile(
        "mutants", deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
    )
    settings.load_profile("mutants")


def pytest_exception_interact(node: Any, call: pytest.CallInfo[Any], report: Any) -> None:
    if isinstance(report, pytest.CollectReport):
        note("collection", node.nodeid, str(report.longrepr))
    elif call.excinfo is not None:
        kind = kind_of(call.excinfo.value)
        note(kind, node.nodeid, f"{call.excinfo.typename}: {call.excinfo.value}")
        if kind == "assertion":
            node.session.shouldstop = "a failed assertion: the fault has been noticed"
