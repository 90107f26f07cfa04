"""A pytest plugin: two tiers of tests, and no skip that the machine does not explain."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import pytest

from tests.hardware import MARKERS, NEEDS, Hardware, hardware

SECOND_TIER = "of the second tier (make test-full runs them)"
BY_COMMAND = "by -m, -k or --deselect on the command line"
TALLY = pytest.StashKey["Tally"]()


class Tally:
    """What was skipped or left out, and why."""

    def __init__(self) -> None:
        self.expected: dict[str, str] = {}  # node id: what the machine lacks for it
        self.skipped: dict[str, str] = {}  # node id: the reason that was given
        self.left_out: Counter[str] = Counter()

    def unexplained(self) -> list[str]:
        """Skips that no lack of this machine explains."""
        return [
            f"{test}: {reason}"
            for test, reason in self.skipped.items()
            if test not in self.expected
        ]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ringlab")
    group.addoption("--full", action="store_true", help="run the second tier of tests as well")
    group.addoption("--slice", metavar="K/N", help="of the tests, run the K-th of N parts")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLY] = Tally()
    for marker, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")
    part = config.getoption("--slice")
    if part and not _is_part(part):
        raise pytest.UsageError(f"--slice={part}: give it as K/N with 1 <= K <= N, such as 2/4")


def _is_part(text: str) -> bool:
    k, _, n = text.partition("/")
    return k.isdigit() and n.isdigit() and 1 <= int(k) <= int(n)


def lacks(item: pytest.Item, machine: Hardware) -> str | None:
    """Say why this machine cannot run a test; None if it can."""
    for name, need in NEEDS.items():
        for marker in item.iter_markers(name):
            reason = need(machine, *marker.args, **marker.kwargs)
            if reason:
                return reason
    return None


def in_part(item: pytest.Item, part: str | None) -> bool:
    """Whether a test belongs to part ``"k/n"``. Parts never depend on what else is collected."""
    if not part:
        return True
    k, n = map(int, part.split("/"))
    return crc32(item.nodeid.encode()) % n == k - 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tally, full, part = config.stash[TALLY], config.getoption("--full"), config.getoption("--slice")
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        second = item.get_closest_marker("slow") is not None
        if second and not full:
            tally.left_out[SECOND_TIER] += 1
        elif not in_part(item, part):
            tally.left_out[f"of other parts than {part}"] += 1
        else:
            kept.append(item)
            continue
        left_out.append(item)
    items[:] = kept
    for item in kept:
        reason = lacks(item, hardware())
        if reason:
            tally.expected[item.nodeid] = reason
            item.add_marker(pytest.mark.skip(reason=reason), append=False)
    if left_out:
        tally.left_out[BY_COMMAND] -= len(left_out)  # the hook below counts them again
        config.hook.pytest_deselected(items=left_out)


class _Recorder:
    """Hears of every deselected item and every skip."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.tally.left_out[BY_COMMAND] += len(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._record(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._record(report)

    def _record(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        longrepr = report.longrepr
        said = longrepr[2] if isinstance(longrepr, tuple) else report.longreprtext
        said = getattr(report, "wasxfail", said)  # an expected failure proves nothing either
        self.tally.skipped[report.nodeid] = said.removeprefix("Skipped: ")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Recorder(session.config.stash[TALLY]))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    tally = session.config.stash[TALLY]
    nothing_ran = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if session.config.getoption("collectonly"):
        return
    if tally.unexplained() and (nothing_ran or session.exitstatus == pytest.ExitCode.OK):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif nothing_ran and tally.left_out and session.config.getoption("--slice"):
        session.exitstatus = pytest.ExitCode.OK  # a part may be empty


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally = terminalreporter.config.stash[TALLY]
    if terminalreporter.config.getoption("collectonly"):
        return
    write = terminalreporter.write_line
    terminalreporter.section("skipped and left out", sep="-")
    write(f"this machine: {hardware()}; so {len(tally.expected)} skips are expected")
    for reason, count in Counter(tally.skipped.values()).most_common():
        write(f"skipped  {count:>4}  {reason}")
    for reason, count in tally.left_out.most_common():
        if count:
            write(f"left out {count:>4}  {reason}")
    for line in tally.unexplained():
        write(f"FAILED: this skip hides a test that this machine could run: {line}", red=True)
