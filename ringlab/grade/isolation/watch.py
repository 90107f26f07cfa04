"""Watching one question from outside: what it sends, prints, uses and leaves."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import time

from ringlab.grade.isolation import descendants, endings, frames
from ringlab.grade.isolation.folder import overfull
from ringlab.grade.isolation.job import FINISHED, Ended, Job
from ringlab.grade.isolation.runner import NONCE

TICK = 0.05
SHARE = 20
"""A look at the processes of the system may take this part of the time."""
OUTPUT_SHOWN = 4000


class Watch:
    """One question under way.

    Parameters
    ----------
    job : Job
        With its cases.
    pid : int
        The process that runs the answer.
    results, output : int
        The ends of its pipes that are read.
    cases : int
        The end of its pipe that is written to.
    grader : int
        A descriptor that can be read when whoever asked is gone.
    folder : str
        Where the answer may write.
    """

    def __init__(
        self, job: Job, pid: int, pipes: tuple[int, int, int], grader: int, folder: str
    ) -> None:
        self.job, self.pid, self.folder, self.grader = job, pid, folder, grader
        self.results, self.output, self.cases = pipes
        self.open = {self.results, self.output}
        self.arrived, self.printed = bytearray(), bytearray()
        self.results_bytes = self.output_bytes = 0
        self.sealed: bool | None = None
        self.problems: tuple[str, ...] | None = None
        self.observations: list[bytes] = []
        self.waiting = [*((b"\0", case) for case in job.cases)]
        if job.altered:
            self.waiting.append((b"\1", job.altered))
        self.nonce = b""
        self.status: int | None = None
        self.began = time.monotonic()
        self.next_look = self.began + TICK
        self.inherited = descendants.own_memory()  # what a fork has before it does anything

    def until_over(self) -> str:
        """Read and watch until all is answered (``"finished"``), or which limit was met, or "".

        It is empty if the process ended before it was done.
        """
        while True:
            self._read(TICK)
            beyond = self._took_all() or self._beyond()
            if beyond:
                return beyond
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
                while self.open and self._read(0):
                    pass
                return self._took_all()

    def _read(self, patience: float) -> bool:
        if self.results not in self.open:
            patience = min(patience, 0.002)  # about to end
        ready = select.select([*self.open, self.grader], [], [], patience)[0]
        if self.grader in ready:
            raise BrokenPipeError("whoever asked for this is gone.")
        if not self.open:
            time.sleep(patience)
        for fd in ready:
            with contextlib.suppress(BlockingIOError):
                data = os.read(fd, 1 << 16)
                if not data:
                    self.open.discard(fd)
                elif fd == self.results:
                    self.arrived += data
                    self.results_bytes += len(data)
                else:
                    self.output_bytes += len(data)
                    self.printed = (self.printed + data)[-OUTPUT_SHOWN:]
        return bool(ready)

    def _took_all(self) -> str:
        """Take the frames that are whole; ``"finished"`` after the last, or ``"forged"``."""
        while (frame := frames.take(self.arrived)) is not None:
            if self.sealed is None:
                self.sealed = frame == b'{"sealed": true}'
                continue
            if self.problems is None:
                self.problems = _problems(frame)
            elif self.nonce and frame[:NONCE] == self.nonce:
                self.observations.append(frame[NONCE:])
            else:
                return "forged"
            if not self.waiting:
                return FINISHED
            self._ask()
        return ""

    def _ask(self) -> None:
        altered, case = self.waiting.pop(0)
        self.nonce = secrets.token_bytes(NONCE)
        with contextlib.suppress(OSError):  # it has closed its end; it will be seen to end
            frames.send(self.cases, self.nonce + altered + case)

    def _beyond(self) -> str:
        limits, now = self.job.limits, time.monotonic()
        if now - self.began > limits.seconds:
            return "time"
        if self.output_bytes > limits.output_bytes:
            return "output"
        if max(self.results_bytes, frames.announced(self.arrived)) > limits.result_bytes:
            return "results"
        if now < self.next_look:
            return ""
        below = descendants.of(os.getpid())
        full = overfull(self.folder, limits.folder_bytes, limits.folder_entries)
        after = time.monotonic()
        self.next_look = after + max(TICK, SHARE * (after - now))
        if len(below) > limits.processes:
            return "processes"
        used = sum(max(0, own - self.inherited) for own in below.values())
        return "memory" if used > limits.memory else "files" if full else ""

    def ended(self, how: str) -> Ended:
        """What became of it, given what `until_over` said."""
        message = ""
        if not how:
            how, message = endings.by_status(self.status or 0, self.job.limits)
        elif how != FINISHED:
            message = endings.by_limit(how, self.job.limits)
        return Ended(
            how,
            message,
            tuple(self.observations),
            self.problems or (),
            bytes(self.printed).decode(errors="replace"),
            time.monotonic() - self.began,
            bool(self.sealed),
        )


def _problems(data: bytes) -> tuple[str, ...]:
    if len(data) > 1 << 20:
        return ()
    try:
        told = json.loads(data)["problems"]
        return tuple(str(text)[:500] for text in told[:20])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
