"""A worker: a process that has imported everything once, and forks one that runs an answer.

It reads jobs from its standard input and writes how they ended to its standard output. It runs
no code of a learner, and watches the process that does from outside: its time, its memory, what
it started and what it prints. It ends, with all that it started, when its input ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
from dataclasses import replace
from typing import Any

from ringlab.grade.isolation import descendants, frames, runner
from ringlab.grade.isolation.folder import own_folder
from ringlab.grade.isolation.job import Ended, Job
from ringlab.grade.isolation.watch import Watch


def do(header: dict[str, Any], jobs: int, ready: runner.Ready) -> Ended:
    """Run one job in processes of its own, and end them all.

    Parameters
    ----------
    header : dict
        Of the job.
    jobs : int
        Where its cases are still to be read from.
    ready : runner.Ready
    """
    parts = header.pop("parts")
    job = Job.received(header)
    with own_folder() as folder, contextlib.ExitStack() as closing:
        (results, to_results), (output, to_output), (cases, to_cases) = (os.pipe() for _ in "roc")
        theirs, ours = (to_results, to_output, cases), (results, output, to_cases)
        for fd in ours:
            closing.callback(os.close, fd)
            os.set_blocking(fd, fd == to_cases)
        worker = os.getpid()
        pid = os.fork()
        if pid == 0:
            runner.become_runner(job, ready, theirs, folder, worker)
        for fd in theirs:
            os.close(fd)
        try:
            received = frames.read_parts(frames.Descriptor(jobs), {"parts": parts})
            if received is None:
                raise BrokenPipeError("whoever asked for this is gone.")
            altered, *plain_cases = received
            job = replace(job, cases=plain_cases, altered=altered)
            watch = Watch(job, pid, ours, jobs, folder)
            how = watch.until_over()
        finally:
            descendants.end(pid)
        return watch.ended(how)


def main() -> None:
    """Serve jobs until there are no more."""
    descendants.adopt_orphans()
    ready = runner.Ready()  # which imports all exercises, once for every question
    gc.collect()
    gc.freeze()  # a child's collector would touch, and so copy, every page it inherits
    jobs, replies = os.dup(0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError):
        while (header := frames.read_header(frames.Descriptor(jobs))) is not None:
            ended = do(header, jobs, ready)
            frames.write(replies, ended.header(), ended.observations)


if __name__ == "__main__":
    main()
