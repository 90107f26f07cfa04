"""Looks at processes from outside, for tests that ask what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def alive(pids: Iterable[int]) -> list[int]:
    """Which of these processes still run; one that waits to be reaped does not."""
    return [pid for pid in pids if psutil.pid_exists(pid) and _status(pid) != "zombie"]


def _status(pid: int) -> str:
    try:
        return psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return "zombie"


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def listening(pids: Iterable[int]) -> set[str]:
    """Addresses on which processes listen, without ports."""
    return {
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


class Script:
    """A Python program in a process of its own, with its source in a file.

    It prints a line when it is where the test wants it.
    """

    def __init__(self, folder: Path, source: str) -> None:
        file = folder / "script.py"
        file.write_text(textwrap.dedent(source))
        self.process = subprocess.Popen(
            [sys.executable, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def line(self) -> str:
        """The next line that the program prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def finish(self, seconds: float = 60.0) -> str:
        """Wait for its end; all that it still prints."""
        output, _ = self.process.communicate(timeout=seconds)
        return str(output)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, and wait until the process is gone."""
        self.process.send_signal(number)
        self.process.wait(timeout=10)
