"""The process that runs a learner's answer, and what it gives up before."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

import torch

import ringlab
from ringlab import grade
from ringlab.grade import plain
from ringlab.grade.case import Case
from ringlab.grade.exercise import Exercise
from ringlab.grade.forbidden import withheld
from ringlab.grade.fouls import REFUSED, REPLACED
from ringlab.grade.isolation import frames, landlock, limits, privileges, ward
from ringlab.grade.isolation.fingerprint import fingerprint
from ringlab.grade.isolation.interference import Interference
from ringlab.grade.isolation.job import Job
from ringlab.grade.isolation.program import execute
from ringlab.grade.observation import Failure, Observation
from ringlab.grade.observe import nothing_happened
from ringlab.grade.registry import all_exercises, exercise
from ringlab.world.processes import orphans

RESULTS, CASES = 200, 201
"""The descriptors of the pipes for results and for cases."""
NONCE = 16
"""Bytes that come with a case and must go back with its result."""

SLOW = ("TooLong", "HungRank")
"""Failures after which the other cases are not tried: each would take its whole time too."""

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/proc/self",
          "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system/cpu", "/dev/null",
          "/dev/urandom", "/dev/zero")  # fmt: skip


def become_runner(
    job: Job, ready: Ready, pipes: tuple[int, int, int], folder: str, worker: int
) -> NoReturn:
    """In a fork of the worker: run the answer, send an observation for each case, and end.

    Parameters
    ----------
    job : Job
        Without its cases.
    ready : Ready
    pipes : tuple of int
        For results, for what is printed, and for cases.
    folder : str
        The only one that may be written to.
    worker : int
        The process that forked this one.
    """
    try:
        orphans.die_with_parent(worker)
        os.setsid()
        _only(*pipes)
        os.chdir(folder)
        os.environ.update(HOME=folder, TMPDIR=folder)
        sys.argv = ["answer"]
        limits.apply(job.limits)
        privileges.drop()
        sealed = landlock.restrict(_readable(), [folder, "/dev/null"])
        frames.send(RESULTS, json.dumps({"sealed": sealed}).encode())
        _Trial(job, ready).serve()
    finally:
        os._exit(1)


def _only(results: int, output: int, cases: int) -> None:
    """Keep three standard streams and the pipes for results and cases; close all else."""
    os.dup2(results, RESULTS, inheritable=False)
    os.dup2(cases, CASES, inheritable=False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(3, min(RESULTS, CASES))
    os.closerange(max(RESULTS, CASES) + 1, 4096)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  lives as long as the process
    sys.stdout = open(1, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="replace", closefd=False)  # noqa: SIM115


def _readable() -> list[str]:
    """What Python, torch and this package need."""
    paths = sysconfig.get_paths()
    python = [sys.prefix, sys.base_prefix, sys.exec_prefix, *paths.values()]
    packages = [Path(module.__file__ or "").parent for module in (ringlab, torch)]
    return sorted({*SYSTEM, *python, *map(str, packages)})


class Ready:
    """What is the same for every answer, made once in the worker.

    Attributes
    ----------
    messages : Interference
    replaced : callable
        Of `fingerprint`.
    """

    def __init__(self) -> None:
        for name in grade.__all__:  # what notebooks import: here it does nothing
            setattr(grade, name, lambda *_, **__: None)
        self.messages = Interference()
        forbidden = tuple(sorted({name for one in all_exercises() for name in one.forbids}))
        with withheld(forbidden):  # so that they are there
            self.replaced = fingerprint(forbidden)


def _withdraw_judges() -> None:
    """Leave of this package's judging side only what notebooks import."""
    for name in [name for name in sys.modules if name.startswith(f"{grade.__name__}.")]:
        del sys.modules[name]
        vars(grade).pop(name.removeprefix(f"{grade.__name__}.").split(".")[0], None)


class _Trial:
    """One answer, tried case after case as they arrive."""

    def __init__(self, job: Job, ready: Ready) -> None:
        self.ready = ready
        self.exercise: Exercise = exercise(job.exercise)
        self.given_up: Observation | None = None
        _withdraw_judges()
        self.withheld = contextlib.ExitStack()
        self.withheld.enter_context(withheld(self.exercise.forbids))
        self.found_replaced = ""
        self.refused = ward.stand()
        self.names, problems = execute(job.cells)
        frames.send(RESULTS, json.dumps({"problems": problems[:20]}).encode())

    def serve(self) -> None:
        """Answer each case with an observation, until there are no more."""
        stream = frames.Descriptor(CASES)
        while (asked := frames.receive(stream)) is not None:
            nonce, altered, case = asked[:NONCE], asked[NONCE] == 1, asked[NONCE + 1 :]
            seen = self._seen(Case.from_plain(plain.load(case)), altered)
            sys.stdout.flush()
            frames.send(RESULTS, nonce + seen)

    def _seen(self, case: Case, altered: bool) -> bytes:
        try:
            if altered:
                with self.ready.messages.on(self._look_for_replaced):
                    seen = self._tried(case)
            else:
                seen = self._tried(case)
            foul = self._foul(case)
            return (foul or seen).to_bytes()
        except BaseException as error:  # whatever an answer can raise costs this case alone
            return _failed(case, type(error).__name__, str(error)).to_bytes()

    def _tried(self, case: Case) -> Observation:
        if self.given_up is not None:
            return self.given_up
        if self.exercise.answer in self.names:
            seen = self.exercise.look(self.names[self.exercise.answer], case)
        else:
            seen = _failed(case, "Missing", f"no cell that works defines {self.exercise.answer!r}.")
        if seen.failure is not None and seen.failure.kind in (*SLOW, "Missing"):
            self.given_up = seen
        return seen

    def _look_for_replaced(self) -> None:
        self.found_replaced = self.found_replaced or self.ready.replaced()

    def _foul(self, case: Case) -> Observation | None:
        self._look_for_replaced()
        if self.found_replaced:
            return _failed(case, REPLACED, f"it replaced {self.found_replaced}.")
        if self.refused():
            return _failed(case, REFUSED, f"it asked for {self.refused()}.")
        return None


def _failed(case: Case, kind: str, message: str) -> Observation:
    return nothing_happened(case.world_size, Failure(kind, message))
