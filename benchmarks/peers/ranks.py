"""The processes of one library: started once, asked turn by turn, and ended for certain."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from benchmarks.peers.peer import Factory
from benchmarks.peers.rank import Answer, Ask, main

GRACE = 2.0  # seconds in which a rank may tell its own error after another one did


class Failed(RuntimeError):
    """A rank raised, ended, or did not answer in time."""


class Ranks:
    """The ranks of a library; leaving the block ends them.

    Parameters
    ----------
    factory : callable
        Makes the library's `Peer`.
    seconds : float
        How long a rank may take for an answer.

    Raises
    ------
    Failed
        By every method; the ranks are ended then, since one that still waits for another
        would never come back. The next call starts them anew.
    """

    def __init__(self, factory: Factory, seconds: float) -> None:
        self.peer = factory()
        self._factory = factory
        self._seconds = seconds
        self._pipes: list[Connection] = []
        self._processes: list[multiprocessing.process.BaseProcess] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Ranks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def ask(self, ask: Ask) -> list[Answer]:
        """Let every rank run, and collect the answers in the order of ranks."""
        if not self._processes:
            self._start()
        for pipe in self._pipes:
            pipe.send(ask)
        return self._collect()

    def end(self) -> None:
        """End the processes, whatever they are doing."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        self._pipes, self._processes = [], []
        if self._folder:
            self._folder.cleanup()
            self._folder = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory()
        store = str(Path(self._folder.name) / "store")
        for rank in range(self.peer.ranks):
            here, there = context.Pipe()
            arguments = (self._factory, rank, store, self._seconds, there)
            process = context.Process(target=main, args=arguments, daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)
        self._collect()

    def _collect(self) -> list[Answer]:
        limit = time.monotonic() + self._seconds
        answers: list[Answer | None] = [None] * len(self._pipes)
        problem = ""
        while None in answers and time.monotonic() < limit:
            for rank, pipe in enumerate(self._pipes):
                if answers[rank] is None and pipe.poll(0.001 if not problem else 0.01):
                    try:
                        answers[rank] = found = pipe.recv()
                        failure = found.error
                    except (EOFError, OSError):
                        failure = self._ending(rank)
                        answers[rank] = Answer(error=failure)
                    if failure and not problem:
                        problem, limit = failure, min(limit, time.monotonic() + GRACE)
        done = [answer for answer in answers if answer is not None]
        if problem or len(done) < len(answers):
            self.end()
            raise Failed(problem or f"no answer within {self._seconds:g} s")
        return done

    def _ending(self, rank: int) -> str:
        process = self._processes[rank]
        process.join(GRACE)
        code = process.exitcode
        if code is not None and code < 0:
            return f"the process was ended by {signal.Signals(-code).name}"
        return f"the process ended with code {code}"
