"""The parent's ends of one rank's connections, and what has come through them."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from ringlab.world.errors import WorldError
from ringlab.world.processes.fork_server import ENDED, REFUSED, STARTED, STATUS
from ringlab.world.processes.launcher import Launcher
from ringlab.world.processes.messages import Failed, Mailbox, Ready, Returned, Setup, Standing


@dataclass(eq=False)
class Rank:
    """A rank as its parent knows it.

    Attributes
    ----------
    pid : int or None
        Process id, once the process exists.
    ended : int or None
        Exit code, or the negative number of the signal that killed it, once it has ended.
    reply : Returned, Failed or None
        The answer to the current run.
    result : bytearray
        The pickled result that came with it.
    stack : bytearray
        What ``faulthandler`` wrote.
    standing : Standing or None
        The rank's answer to what it is at.
    """

    number: int
    ticket: int
    calls: Mailbox
    control: Mailbox
    output: int
    stacks: int
    status: int
    pid: int | None = None
    ended: int | None = None
    ended_at: float = 0.0
    lost: bool = False
    ready: bool = False
    reply: Returned | Failed | None = None
    result: bytearray = field(default_factory=bytearray)
    stack: bytearray = field(default_factory=bytearray)
    standing: Standing | None = None

    @property
    def gone(self) -> bool:
        """Whether its process has ended, or nobody is left who would know."""
        return self.ended is not None or self.lost

    @property
    def busy(self) -> bool:
        """Whether it still owes an answer."""
        return self.reply is None and not self.gone

    @property
    def channels(self) -> dict[Any, str]:
        """What to watch for something to read, and its name."""
        return {
            self.calls.sock: "calls",
            self.control.sock: "control",
            self.output: "output",
            self.stacks: "stacks",
            self.status: "status",
        }

    def begin(self) -> None:
        """Forget the last run."""
        self.reply, self.standing = None, None
        self.result, self.stack = bytearray(), bytearray()

    def read_status(self) -> None:
        """Take what the fork server reports."""
        data = read_now(self.status)
        if data is None:
            self.lost, self.ended_at = self.ended is None, time.monotonic()
            return
        for start in range(0, len(data), STATUS.size):
            what, number = STATUS.unpack(data[start : start + STATUS.size])
            if what == STARTED:
                self.pid = number
            elif what == ENDED:
                self.ended, self.ended_at = os.waitstatus_to_exitcode(number), time.monotonic()
            elif what == REFUSED:
                raise WorldError(
                    f"rank {self.number} could not be started: {os.strerror(number)}. Fewer "
                    "ranks, or a higher limit on processes or memory, may help."
                )

    def read_calls(self) -> bool:
        """Take answers; False when no more can come."""
        messages, more = self.calls.collect()
        for header, body in messages:
            if isinstance(header, Ready):
                self.ready = True
            else:
                self.reply, self.result = header, body
        return more

    def read_control(self) -> bool:
        """Take what the rank says it is at; False when no more can come."""
        messages, more = self.control.collect()
        for header, _ in messages:
            self.standing = header
        return more

    def close(self) -> None:
        """Close the parent's ends."""
        self.calls.close()
        self.control.close()
        for fd in (self.output, self.stacks, self.status):
            with contextlib.suppress(OSError):
                os.close(fd)


def read_now(fd: int) -> bytes | None:
    """What can be read at once, empty if nothing; None at the end."""
    try:
        return os.read(fd, 1 << 16) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def start(setup: Setup, server: Launcher) -> Rank:
    """Ask for one rank; the ends that are the rank's own are closed here."""
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        calls, their_calls = socket.socketpair()
        ours.callback(calls.close)
        theirs.callback(their_calls.close)
        control, their_control = socket.socketpair()
        ours.callback(control.close)
        theirs.callback(their_control.close)
        pipes = []
        for _ in ("output", "stacks", "status"):
            read, write = os.pipe()
            os.set_blocking(read, False)
            ours.callback(os.close, read)
            theirs.callback(os.close, write)
            pipes.append((read, write))
        (output, output_end), (stacks, stacks_end), (status, status_end) = pipes
        ends = [their_calls.fileno(), their_control.fileno(), output_end, stacks_end, status_end]
        ticket = server.fork(ends)
        ours.pop_all()
        return Rank(setup.rank, ticket, Mailbox(calls), Mailbox(control), output, stacks, status)
