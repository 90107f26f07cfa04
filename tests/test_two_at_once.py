"""The script behind ``make test-library``: two pytests at once, one verdict."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "test_library.py"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("test_library_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(0, 0, 0), (1, 0, 1), (0, 2, 2), (0, 5, 0), (5, 0, 0), (5, 1, 1), (1, 5, 1), (5, 5, 5)],
)
def test_one_pytest_that_failed_fails_both(tool: ModuleType, first, second, expected):
    assert tool.verdict(first, second) == expected


def test_both_halves_run_and_the_failure_of_either_is_seen(tmp_path: Path):
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    processes\n    browser\n    aside\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_plain(): print('plain ran')\n"
        "@pytest.mark.processes\n"
        "def test_marked(): assert not 'marked ran'\n"
    )
    command = [sys.executable, str(TOOL), str(tmp_path), "-q", "-s"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90)
    assert done.returncode == 1
    assert done.stdout.index("plain ran") < done.stdout.index("marked ran")
    assert sorted(path.name for path in tmp_path.glob("*.xml")) == ["beside.xml", "library.xml"]
