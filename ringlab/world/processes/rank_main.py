"""The life of a rank: joins the group, then runs one function after another."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import io
import os
import signal
import socket
import sys
from typing import Any

import torch
import torch.distributed as dist

from ringlab.world.processes import (
    failure,
    hooks,
    last_op,
    messages,
    orphans,
    pickling,
    rendezvous,
    surroundings,
)
from ringlab.world.processes.clocks import GpuClock, HostClock
from ringlab.world.processes.fork_server import RankEnds
from ringlab.world.processes.messages import Call, Failed, Ready, Returned, Setup, Standing

_libc = ctypes.CDLL(None)
_CPU = torch.device("cpu")


def main(ends: RankEnds, server: int) -> None:
    """Live as a rank until the parent closes the connection. Does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    orphans.die_with_parent(server)
    _capture_output(ends.output)
    faulthandler.enable(ends.stacks, all_threads=True)
    faulthandler.register(signal.SIGUSR1, ends.stacks, all_threads=True)
    for fd in (ends.calls, ends.control, ends.stacks):
        os.set_inheritable(fd, False)
    calls, control = socket.socket(fileno=ends.calls), socket.socket(fileno=ends.control)
    message = messages.receive(calls)
    if message is not None:
        rank = _Rank(message[0], calls)
        orphans.watch(control, server, lambda: rank.stand(control))
        rank.live()
    os._exit(0)


def _capture_output(pipe: int) -> None:
    """Send what this process writes, by Python or by C++, to the parent."""
    os.dup2(pipe, 1)
    os.dup2(pipe, 2)
    os.close(pipe)
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(fd, "w", closefd=False)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw), "utf-8", errors="backslashreplace", line_buffering=True
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the program may have replaced or closed it
            stream.flush()
    _libc.fflush(None)


class _Rank:
    def __init__(self, setup: Setup, calls: socket.socket) -> None:
        self.setup, self.calls = setup, calls
        self.environment = rendezvous.rank_environment(setup)
        self.home = rendezvous.home(setup)
        self.journal = last_op.Journal(setup.rank, GpuClock() if self.home else HostClock())

    def live(self) -> None:
        """Join, then serve calls for as long as there is a parent."""
        try:
            surroundings.apply(self.setup.surroundings, self.environment)
            torch.set_num_threads(self.setup.threads)
            hooks.install(self.journal)
            rendezvous.join(self.setup, self.journal)
            reply: object = Ready()
        except BaseException as error:
            reply = failure.of(error, self.setup.rank, self.journal.recorder.recording())
        self.say(reply)
        while (message := messages.receive(self.calls)) is not None:
            reply, result = self.obey(*message)
            self.say(reply, result)
            del message, result

    def say(self, reply: object, result: bytes = b"") -> None:
        _flush_output()
        messages.send(self.calls, reply, result)

    def obey(self, call: Call, body: bytearray) -> tuple[Returned | Failed, bytes]:
        """Run one function; never raises."""
        try:
            self.prepare(call)
            function, args, kwargs = pickling.loads(body)
            with surroundings.main_module_of(function), call.ambient.applied():
                self.journal.recorder.start()
                result = function(*args, **kwargs)
                self.journal.recorder.stop()
            return self.returned(result)
        except BaseException as error:
            return failure.of(error, self.setup.rank, self.journal.recorder.recording()), b""

    def prepare(self, call: Call) -> None:
        """Make everything as it is at the start of any run."""
        surroundings.apply(call.surroundings, self.environment)
        surroundings.forget_groups()
        surroundings.seed(call.seed + self.setup.rank)
        torch.set_num_threads(self.setup.threads)
        torch.set_default_dtype(call.dtype)
        if torch.get_default_device() != (self.home or _CPU):
            torch.set_default_device(self.home)
        if self.home is not None and call.ambient.device.type == "cuda":
            call.ambient.device = self.home  # the caller's GPU is that of one rank only
        pickling.remember(call.sources)
        self.journal.begin()

    def returned(self, result: Any) -> tuple[Returned, bytes]:
        """Pack the result, after the GPU has finished: what hangs, hangs in the run it is of."""
        if self.home is not None:
            torch.cuda.synchronize()
        try:
            data, _ = pickling.dumps(result)
        except TypeError as error:
            raise TypeError(f"the result of rank {self.setup.rank} {error}") from None
        journal = self.journal
        leftovers = journal.leftovers()
        if not dist.is_initialized():
            leftovers.append("its process group, which it destroyed")
        return Returned(journal.recorder.recording(), leftovers), data

    def stand(self, control: socket.socket) -> None:
        """Answer, from the watching thread, what the rank is at."""
        try:
            operation = self.journal.in_words()
        except Exception as error:  # a GPU that has failed cannot be asked
            operation = f"the state of its operations cannot be read: {error}"
        messages.send(control, Standing(operation, self.journal.recorder.recording()))
