"""Workers side by side: jobs go in, their ends come out as they are done."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import TypeVar

from ringlab.grade.isolation import frames
from ringlab.grade.isolation.job import Ended, Job

PATIENCE = 5.0

T = TypeVar("T")

LOST = "lost"
PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "TMPDIR",
             "LANG", "LC_ALL", "LC_CTYPE")  # fmt: skip
"""What a worker is given of the environment, in which there may be passwords."""


class Worker:
    """One worker process; a new one is started if it is lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def do(self, job: Job) -> Ended:
        """Run a job; two attempts, if the worker itself is lost."""
        for _ in range(2):
            process = self._process or self._start()
            try:
                ended = _asked(process, job)
            except OSError:
                ended = None
            if ended is not None:
                return ended
            self.close()
        return Ended(LOST, "the process that watches it was lost, twice", (), (), "", 0.0, False)

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ringlab.grade.isolation.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True,
        )  # fmt: skip
        return self._process

    def close(self) -> None:
        """End the worker, and with it whatever runs."""
        if self._process is not None:
            with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
                self._process.communicate(timeout=PATIENCE)  # its input ends, and so it does
            self._process.kill()
            self._process.communicate()
            self._process = None


def _asked(process: subprocess.Popen[bytes], job: Job) -> Ended | None:
    """Let a worker do a job; None if it is gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    frames.write(process.stdin, job.header(), job.parts())
    header = frames.read_header(process.stdout)
    parts = None if header is None else frames.read_parts(process.stdout, header)
    return None if header is None or parts is None else Ended.received(header, parts)


class Pool:
    """Several workers; use it in a ``with``.

    Parameters
    ----------
    workers : int
    """

    def __init__(self, workers: int) -> None:
        self._free: SimpleQueue[Worker] = SimpleQueue()
        self._workers = [Worker() for _ in range(workers)]
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(workers)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def run(self, jobs: Iterable[tuple[T, Job]]) -> Iterator[tuple[T, Ended]]:
        """Run jobs, each with a tag that comes back with its end; in the order of their ends."""
        pending: dict[Future[Ended], T] = {}
        for tag, job in jobs:
            pending[self._threads.submit(self._one, job)] = tag
            if len(pending) >= 2 * len(self._workers):
                yield from self._done(pending)
        while pending:
            yield from self._done(pending)

    def _one(self, job: Job) -> Ended:
        worker = self._free.get()
        try:
            return worker.do(job)
        finally:
            self._free.put(worker)

    @staticmethod
    def _done(pending: dict[Future[Ended], T]) -> Iterator[tuple[T, Ended]]:
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            yield pending.pop(future), future.result()
