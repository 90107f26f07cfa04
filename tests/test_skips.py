"""No test is skipped that this machine could run, and every skip is told with its reason."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hardware import BROWSERS, Hardware, hardware, listed_gpus

ROOT = Path(__file__).parent.parent
BARE = Hardware(gpus=0, nccl=False, gloo=True, browser=None)
RICH = Hardware(gpus=2, nccl=True, gloo=True, browser="/opt/chromium")
SUITE = """
    import pytest

    @pytest.mark.cuda
    def test_on_one_gpu(): pass

    @pytest.mark.cuda(count=3)
    def test_on_three_gpus(): pass

    @pytest.mark.nccl
    def test_on_ranks_over_nccl(): pass

    @pytest.mark.browser
    def test_in_browser(): pass

    @pytest.mark.slow
    def test_long(): pass

    def test_plain(): pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite of its own, under this project's accounting, on a machine with nothing."""
    monkeypatch.setattr("tests.accounting.hardware", lambda: BARE)
    pytester.makeconftest("pytest_plugins = ['tests.accounting']")
    return pytester


def test_what_a_bare_machine_lacks_is_skipped_and_told(suite: pytest.Pytester) -> None:
    suite.makepyfile(SUITE)
    result = suite.runpytest_inprocess()
    result.assert_outcomes(passed=1, skipped=4, deselected=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "this machine: 0 GPUs, gloo, no browser; so 4 skips are expected",
            "skipped  *1  needs 1 GPU, torch can use 0",
            "skipped  *1  needs 3 GPUs, torch can use 0",
            "skipped  *1  needs 2 GPUs, torch can use 0",
            "skipped  *1  needs Chromium",
            "left out *1  of the second tier (make test-full runs them)",
        ]
    )


def test_what_a_rich_machine_has_is_run(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.accounting.hardware", lambda: RICH)
    suite.makepyfile(SUITE)
    suite.runpytest_inprocess().assert_outcomes(passed=4, skipped=1, deselected=1)


def test_ranks_over_nccl_need_a_torch_that_has_it(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.accounting.hardware", lambda: replace(RICH, nccl=False))
    suite.makepyfile(SUITE)
    result = suite.runpytest_inprocess()
    result.stdout.fnmatch_lines(["skipped  *1  needs a torch with NCCL"])


def test_full_runs_the_second_tier(suite: pytest.Pytester) -> None:
    suite.makepyfile(SUITE)
    suite.runpytest_inprocess("--full", "-m", "slow").assert_outcomes(passed=1, deselected=5)


def test_what_the_command_line_leaves_out_is_counted_apart(suite: pytest.Pytester) -> None:
    suite.makepyfile(SUITE)
    result = suite.runpytest_inprocess("-k", "plain")
    result.stdout.fnmatch_lines(
        ["left out *4  by -m, -k or --deselect on the command line", "left out *1  of the second*"]
    )


@pytest.mark.parametrize(
    "stray",
    [
        "def test_it(): pytest.skip('not today')",
        "@pytest.mark.skipif(True, reason='not today')\n    def test_it(): pass",
        "@pytest.mark.xfail(reason='not today', strict=True)\n    def test_it(): assert False",
        "pytest.importorskip('no_such_module', reason='not today')\n    def test_it(): pass",
    ],
)
def test_a_skip_that_the_machine_does_not_explain_fails_the_run(
    suite: pytest.Pytester, stray: str
) -> None:
    suite.makepyfile(f"    import pytest\n    def test_good(): pass\n    {stray}")
    result = suite.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED: this skip hides a test*not today*"])


def test_parts_cover_every_test_once(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(40))\ndef test_n(n): pass")
    ran = [
        suite.runpytest_inprocess(f"--slice={k}/3").parseoutcomes().get("passed", 0)
        for k in (1, 2, 3)
    ]
    assert sum(ran) == 40
    assert min(ran) > 0


def test_an_empty_part_is_no_failure(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_one(): pass")
    results = [suite.runpytest_inprocess(f"--slice={k}/2") for k in (1, 2)]
    assert [result.ret for result in results] == [0, 0]


def test_no_test_at_all_is_a_failure(suite: pytest.Pytester) -> None:
    assert suite.runpytest_inprocess().ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("part", ["0/4", "5/4", "2", "a/b"])
def test_a_part_that_is_none_is_refused(suite: pytest.Pytester, part: str) -> None:
    suite.makepyfile("def test_one(): pass")
    assert suite.runpytest_inprocess(f"--slice={part}").ret == pytest.ExitCode.USAGE_ERROR


def test_torch_can_use_every_gpu_that_the_driver_lists() -> None:
    assert hardware().gpus == listed_gpus(), (
        "tests marked cuda would be skipped although there are GPUs: use a torch that fits the "
        "driver (make test TORCH=system), or hide the GPUs with CUDA_VISIBLE_DEVICES="
    )


def test_a_browser_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BROWSERS:
        fake = tmp_path / name
        fake.write_text("#!/bin/sh\n")
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert hardware.__wrapped__().browser == str(fake)
        fake.unlink()


SKIPPING = {"skip", "skipif", "skipIf", "skipUnless", "skipTest", "importorskip", "xfail"}


def _skips(tree: ast.AST) -> Iterator[int]:
    """Lines that call on pytest or unittest to skip."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node).split(".")[0]
            names = {node.attr} if owner in ("pytest", "mark", "unittest", "self") else set()
        elif isinstance(node, ast.ImportFrom) and node.module in ("pytest", "unittest"):
            names = {alias.name for alias in node.names}
        else:
            continue
        if names & SKIPPING:
            yield node.lineno


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests").rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT))
)
def test_only_the_accounting_skips(file: Path) -> None:
    allowed = file.name == "accounting.py"
    lines = list(_skips(ast.parse(file.read_text())))
    assert allowed or not lines, f"lines {lines} skip by themselves: use a marker of hardware.py"


def test_no_cell_of_a_notebook_is_spared() -> None:
    spared = []
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for number, cell in enumerate(json.loads(file.read_text())["cells"]):
            tags = cell["metadata"].get("tags", [])
            if "nbval-skip" in tags or "NBVAL_SKIP" in "".join(cell["source"]):
                spared.append(f"{file.name}, cell {number}")
    assert spared == []
