"""The parent's handle on the fork server: starts it once, asks it for ranks."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from multiprocessing import spawn
from pathlib import Path
from typing import IO

from ringlab.world.errors import WorldError
from ringlab.world.processes.fork_server import FORK, REQUEST, SIGNAL

_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",  # or numpy would use every core in every rank
    "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",  # macOS would end a rank for what torch loads
}
_lock = threading.Lock()
_current: Launcher | None = None
_tickets = itertools.count(1)


class Launcher:
    """One fork server. It ends when the last object that holds its launcher lets go."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.sources = _fingerprint()
        self._sock, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the server
        with theirs:
            self._process = subprocess.Popen(
                command("ringlab.world.processes.fork_server", theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **_ENVIRONMENT},
            )
        self.close = weakref.finalize(
            self, _end, self._sock, self._process, self._errors, self.owner
        )

    @property
    def alive(self) -> bool:
        """Whether the server can still fork."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    def fork(self, fds: list[int]) -> int:
        """Ask for a rank that gets copies of `fds`; the ticket by which to name it."""
        ticket = next(_tickets)
        self._send(REQUEST.pack(FORK, ticket, 0), fds)
        return ticket

    def signal(self, ticket: int, number: int) -> None:
        """Send a signal to a rank, if it has not ended.

        The server does it, because only it knows for sure that the rank's process id has not
        passed to another process.
        """
        self._send(REQUEST.pack(SIGNAL, ticket, number), [])

    def _send(self, request: bytes, fds: list[int]) -> None:
        try:
            socket.send_fds(self._sock, [request], fds)
        except OSError as error:
            raise WorldError(f"{self.epitaph()} ({error})") from None

    def epitaph(self) -> str:
        """Why there is no server any more, in words."""
        try:
            code: int | None = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            code = None
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        text = f"the process that starts ranks has ended (exit status {code})"
        return f"{text}:\n{said}" if said else text + "; the next run starts another one."


def launcher() -> Launcher:
    """The fork server of this process, started if there is none, or none that is up to date.

    It is replaced when a source file of the library has changed since it started, so that
    ranks never run older code than their parent can see.
    """
    global _current
    with _lock:
        found = _current
        if (
            found is None
            or found.owner != os.getpid()
            or not found.alive
            or found.sources != _fingerprint()
        ):
            found = _current = Launcher()
        return found


def command(module: str, fd: int) -> list[str]:
    """Command line of a Python like this one that calls `serve` of a module with an open file."""
    path = [os.fspath(entry) for entry in sys.path]
    program = (
        # without garbage collection the imports take a tenth less
        f"import gc, sys; gc.disable(); sys.path[:] = {path!r}; "
        f"from {module} import serve; serve({fd}, {os.getpid()})"
    )
    python = os.fsdecode(spawn.get_executable() or sys.executable)
    return [python, *(f"-W{option}" for option in sys.warnoptions), "-c", program]


def _fingerprint() -> tuple[int, int]:
    """Number of the library's source files, and when the last one changed."""
    root = Path(__file__).parents[2]
    times = [path.stat().st_mtime_ns for path in root.rglob("*.py")]
    return len(times), max(times, default=0)


def _end(
    sock: socket.socket, process: subprocess.Popen[bytes], errors: IO[bytes], owner: int
) -> None:
    sock.close()
    errors.close()
    if os.getpid() != owner:  # a fork of the owner: the server is not its child
        return
    try:
        process.wait(timeout=2.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
