"""The fork server: a process that has imported torch once and forks every rank.

Importing torch takes more than a second of CPU time in each process; forking one that has
imported it takes milliseconds. The server stays free of threads and of CUDA, so its forks
are safe, which forks of a notebook kernel are not.

It runs no code of the user and reads nothing but fixed-size requests from a socket that only
its parent holds. It ends when that socket closes or its parent is gone.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import struct
from typing import NamedTuple, NoReturn

from ringlab.world.processes import orphans

REQUEST = struct.Struct("=cqi")  # what to do, the rank's ticket, a signal number
FORK, SIGNAL = b"f", b"s"
STATUS = struct.Struct("=cq")  # what happened, and a number
STARTED, ENDED, REFUSED = b"p", b"x", b"e"  # with a process id, a wait status, an errno


class RankEnds(NamedTuple):
    """File descriptors of a rank, in the order in which they are passed.

    Attributes
    ----------
    calls : int
        Socket for calls and results.
    control : int
        Socket for questions while the rank is busy; closed when it shall end.
    output : int
        Pipe for what the rank prints.
    stacks : int
        Pipe for tracebacks that ``faulthandler`` writes.
    """

    calls: int
    control: int
    output: int
    stacks: int


class _Child(NamedTuple):
    pid: int
    status: int


class _Server:
    def __init__(self, requests: socket.socket, parent: int) -> None:
        self.requests, self.parent = requests, parent
        self.children: dict[int, _Child] = {}
        self.wake_read, self.wake_write = os.pipe()

    def serve(self) -> None:
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        while os.getppid() == self.parent:
            watched = [self.requests.fileno(), self.wake_read]
            readable, _, _ = select.select(watched, [], [], orphans.POLL_SECONDS)
            if self.wake_read in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wake_read, 4096)
            self.reap()
            if self.requests.fileno() in readable and not self.obey():
                return

    def reap(self) -> None:
        """Report the exit status of every rank that has ended."""
        for ticket, child in list(self.children.items()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                del self.children[ticket]
                _report(child.status, ENDED, status)
                os.close(child.status)

    def obey(self) -> bool:
        """Carry out one request; False when there is nobody left who could make one."""
        data, fds, _, _ = socket.recv_fds(self.requests, REQUEST.size, len(RankEnds._fields) + 1)
        if len(data) < REQUEST.size:
            return False
        what, ticket, number = REQUEST.unpack(data)
        if what == FORK:
            self.fork(ticket, fds)
        elif ticket in self.children:
            os.kill(self.children[ticket].pid, number)
        return True

    def fork(self, ticket: int, fds: list[int]) -> None:
        if len(fds) == len(RankEnds._fields) + 1:  # fewer arrive when too many files are open
            *ends, status = fds
            server = os.getpid()
            try:
                pid = os.fork()
            except OSError as error:
                _report(status, REFUSED, error.errno or 0)
            else:
                if pid == 0:
                    self.become_rank(RankEnds(*ends), status, server)
                self.children[ticket] = _Child(pid, status)
                _report(status, STARTED, pid)
                fds = ends
        for fd in fds:
            os.close(fd)

    def become_rank(self, ends: RankEnds, status: int, server: int) -> NoReturn:
        """In the child: let go of everything that is the server's, then live as a rank."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.requests.close()
            others = [child.status for child in self.children.values()]
            for fd in (status, self.wake_read, self.wake_write, *others):
                os.close(fd)
            from ringlab.world.processes import rank_main

            rank_main.main(ends, server)
        finally:
            os._exit(1)


def _report(status: int, what: bytes, number: int) -> None:
    with contextlib.suppress(OSError):  # the parent has stopped listening
        os.write(status, STATUS.pack(what, number))


def serve(fd: int, parent: int) -> None:
    """Run the server on the socket `fd`, for the process `parent`. Does not return."""
    from ringlab.world.processes import rank_main  # noqa: F401  imports torch before any fork

    gc.enable()
    gc.freeze()  # a rank's collector would touch, and so copy, every page it inherits
    try:
        _Server(socket.socket(fileno=fd), parent).serve()
    finally:
        os._exit(0)
