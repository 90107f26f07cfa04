"""nbval as `make test-notebooks` runs it: dead kernels, hangs, and what could hide behind them."""

import time
from pathlib import Path
from queue import Empty

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebooks.kernel_watch import KernelDied, watched

METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


@pytest.fixture
def nbval(pytester):
    """Run nbval over a notebook of these cells, as the Makefile does; seconds and outcomes."""
    pytester.makeconftest('pytest_plugins = ["tests.notebooks.kernel_watch"]')
    pytester.makeini("[pytest]\nxfail_strict = true")
    pytester.syspathinsert(Path(__file__).parents[2])

    def run(*sources, cell_timeout):
        cells = [
            new_code_cell(source, id=f"cell-{place:02d}", execution_count=place + 1)
            for place, source in enumerate(sources)
        ]
        path = pytester.path / "made.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata=METADATA), path)
        began = time.perf_counter()
        result = pytester.runpytest_subprocess(
            "--nbval", "--nbval-current-env", f"--nbval-cell-timeout={cell_timeout}", path
        )
        return time.perf_counter() - began, result

    return run


@pytest.mark.notebook
def test_a_kernel_that_dies_is_noticed_long_before_the_cell_timeout(nbval):
    seconds, result = nbval("one = 1", "import os; os._exit(1)", "two = 2", cell_timeout=1000)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*the kernel died while it ran this cell*"])
    assert seconds < 100


@pytest.mark.slow
@pytest.mark.notebook
def test_a_hang_costs_one_cell_timeout_and_hides_nothing_behind_an_expected_failure(nbval):
    hang = (
        "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except BaseException: pass"
    )
    seconds, result = nbval("one = 1", hang, "two = 2", "three = 3", cell_timeout=3)
    result.assert_outcomes(passed=1, failed=1, errors=2, xfailed=0, xpassed=0)
    result.stdout.fnmatch_lines(["*Timeout of 3 seconds exceeded*", "*not run: an earlier cell*"])
    assert seconds < 100


def test_a_message_that_came_before_the_end_is_still_read():
    messages = ["the last one"]

    def get_message(stream, timeout):
        if messages:
            return messages.pop()
        raise Empty

    get = watched(get_message, lambda: False)
    assert get("iopub", timeout=5) == "the last one"
    with pytest.raises(KernelDied):
        get("iopub", timeout=5)


def test_a_living_kernel_that_says_nothing_is_waited_for_until_the_timeout():
    asked = []

    def get_message(stream, timeout):
        asked.append(timeout)
        time.sleep(min(timeout, 0.05))
        raise Empty

    with pytest.raises(Empty):
        watched(get_message, lambda: True)("shell", timeout=0.2)
    assert len(asked) > 1
