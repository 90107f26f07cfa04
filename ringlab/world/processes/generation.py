"""One set of live ranks, seen from the parent: started together, thrown away together."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from torch._C._distributed_c10d import TCPStore

from ringlab.world.errors import WorldError
from ringlab.world.processes import stacks
from ringlab.world.processes.handle import Rank, read_now, start
from ringlab.world.processes.launcher import Launcher, launcher
from ringlab.world.processes.messages import Setup
from ringlab.world.processes.output import Relay
from ringlab.world.processes.shield import shielded

STACK_SECONDS = 1.5
"""How long a busy rank has to show its stack, which it does even when Python cannot run."""

STANDING_SECONDS = 0.3
"""How long it has to name its last operation, for which Python must run."""

PIPE_READS = 4
"""Reads that empty a pipe, which holds no more than one of them takes on common systems."""

END_SECONDS = 5.0
"""How long a killed rank may take to disappear; only one stuck in a device driver does."""


class Generation:
    """Ranks that were started together.

    They are killed when this object is closed, is collected, or the interpreter ends.

    Parameters
    ----------
    setups : list of Setup
    store : TCPStore
        The store on which they meet; it lives as long as they do.
    """

    def __init__(self, setups: list[Setup], store: TCPStore) -> None:
        self.launcher = launcher()
        self.ranks: list[Rank] = []
        self._selector = selectors.DefaultSelector()
        self._ending = threading.Event()
        self.close = weakref.finalize(
            self,
            _end,
            self._ending,
            self.ranks,
            self._selector,
            self.launcher,
            store,
            os.getpid(),
        )
        try:
            for setup in setups:
                rank = start(setup, self.launcher)
                self.ranks.append(rank)
                for fd, channel in rank.channels.items():
                    self._selector.register(fd, selectors.EVENT_READ, (rank, channel))
                rank.calls.post(setup)
        except BaseException:
            self.close()
            raise

    def post(self, message: list[memoryview]) -> None:
        """Give every rank a message that was packed once."""
        for rank in self.ranks:
            rank.begin()
        for rank in self.ranks:
            rank.calls.post_packed(list(message))

    def pump(self, timeout: float, relay: Relay) -> None:
        """Wait up to `timeout` seconds for something to happen, and take it in.

        Raises
        ------
        WorldError
            If another thread has closed the world.
        """
        try:
            self._pump(timeout, relay)
        except (OSError, ValueError, KeyError):
            if not self._ending.is_set():
                raise
        if self._ending.is_set():
            raise WorldError("this world was closed while it ran.")

    def _pump(self, timeout: float, relay: Relay) -> None:
        self._watch_writable()
        for key, events in self._selector.select(max(0.0, min(timeout, 1.0))):
            rank, channel = key.data
            if events & selectors.EVENT_WRITE:
                rank.calls.flush()
            if events & selectors.EVENT_READ and not self._take(rank, channel, relay):
                self._selector.unregister(key.fileobj)
        relay.pass_on()

    def _watch_writable(self) -> None:
        for rank in self.ranks:
            key = self._selector.get_map().get(rank.calls.sock)
            wanted = selectors.EVENT_READ | selectors.EVENT_WRITE * rank.calls.sending
            if key is not None and key.events != wanted:
                self._selector.modify(rank.calls.sock, wanted, key.data)

    def _take(self, rank: Rank, channel: str, relay: Relay) -> bool:
        """Read from one connection; False when it has come to its end."""
        if channel == "status":
            rank.read_status()
            if rank.gone:
                self._hear_out(rank, relay)
            return not rank.gone
        if channel == "calls":
            more = rank.read_calls()
            if rank.reply is not None:
                self._hear_out(rank, relay)
            return more
        if channel == "control":
            return rank.read_control()
        fd = rank.output if channel == "output" else rank.stacks
        data = read_now(fd)
        if data is not None:
            if channel == "output":
                relay.feed(rank.number, data)
            else:
                rank.stack += data
        return data is not None

    def _hear_out(self, rank: Rank, relay: Relay) -> None:
        """Take the rest of what a rank has said before it answered or ended.

        That is no more than a pipe holds; a thread it has left behind may print for ever.
        """
        for _ in range(PIPE_READS):
            relay.feed(rank.number, read_now(rank.output) or b"")
            rank.stack += read_now(rank.stacks) or b""
        relay.finish(rank.number)

    def ask(self, relay: Relay) -> None:
        """Ask the busy ranks where they stand, and wait a moment for the answers."""
        asked = [rank for rank in self.ranks if rank.busy and rank.pid is not None]
        for rank in asked:
            rank.stack = bytearray()
            with contextlib.suppress(WorldError):
                self.launcher.signal(rank.ticket, signal.SIGUSR1)
        self._pump_until(
            lambda: all(stacks.complete(rank.stack) for rank in asked if rank.busy),
            time.monotonic() + STACK_SECONDS,
            relay,
        )
        # Not before: faulthandler may crash while it walks the stack of a thread that runs.
        for rank in asked:
            with contextlib.suppress(OSError):
                rank.control.sock.send(b"?")
        self._pump_until(
            lambda: all(rank.standing for rank in asked if rank.busy),
            time.monotonic() + STANDING_SECONDS,
            relay,
        )

    def _pump_until(self, done: Callable[[], bool], deadline: float, relay: Relay) -> None:
        while not done() and time.monotonic() < deadline:
            self.pump(deadline - time.monotonic(), relay)


def _end(ending: threading.Event, *everything: Any) -> None:
    with shielded():
        ending.set()
        _end_ranks(*everything)


def _end_ranks(
    ranks: list[Rank],
    selector: selectors.BaseSelector,
    server: Launcher,
    store: TCPStore,
    owner: int,
) -> None:
    """Kill the ranks, wait until they are gone, and close everything."""
    if os.getpid() == owner:  # not in a fork of the parent, whose ranks they are not
        with contextlib.suppress(WorldError):
            for rank in ranks:
                if not rank.gone:
                    server.signal(rank.ticket, signal.SIGKILL)
        deadline = time.monotonic() + END_SECONDS
        for rank in ranks:
            _wait_until_gone(rank, deadline)
    for rank in ranks:
        rank.close()
    selector.close()
    ranks.clear()


def _wait_until_gone(rank: Rank, deadline: float) -> None:
    with selectors.DefaultSelector() as waiting, contextlib.suppress(WorldError):
        waiting.register(rank.status, selectors.EVENT_READ)
        while not rank.gone and time.monotonic() < deadline:
            if waiting.select(deadline - time.monotonic()):
                rank.read_status()
