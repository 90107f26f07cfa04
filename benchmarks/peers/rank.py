"""What a rank's process does: run its library when it is asked to, and answer."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from benchmarks.peers.peer import Factory, Peer, Step
from benchmarks.peers.problem import Problem
from ringlab.meter import PeakBytes

TEXT = 200  # characters of an error that are kept


@dataclass(frozen=True)
class Ask:
    """What a rank is asked.

    Attributes
    ----------
    problem : Problem
    backward : bool
        Whether to run the backward too.
    tensors : bool
        Whether to answer with the results, or only with the readings.
    memory : bool
        Whether to count the bytes of the tensors that it makes, which slows it down.
    """

    problem: Problem
    backward: bool = True
    tensors: bool = False
    memory: bool = False


@dataclass(frozen=True)
class Answer:
    """What a rank answers: a step and the most bytes alive in it, or the text of its error."""

    step: Step | None = None
    peak: int | None = None
    error: str = ""


def main(factory: Factory, rank: int, store: str, seconds: float, pipe: Connection) -> None:
    """Join the others, then answer until the pipe closes."""
    try:
        peer = factory()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.set_num_threads(peer.threads)
            _silence()
            rendezvous = FileStore(store, peer.ranks)
            dist.init_process_group(
                "gloo", store=rendezvous, rank=rank, world_size=peer.ranks,
                timeout=timedelta(seconds=seconds),
            )  # fmt: skip
            peer.start()
            pipe.send(Answer())
            while True:
                pipe.send(_answer(peer, pipe.recv()))
    except EOFError:
        pass
    except BaseException as failure:
        with contextlib.suppress(OSError):
            pipe.send(Answer(error=told(failure)))


def _answer(peer: Peer, ask: Ask) -> Answer:
    shard = peer.load(ask.problem)
    if ask.memory:
        with PeakBytes() as meter:
            step = peer.step(ask.problem, shard, ask.backward)
            peak = meter.peak
    else:
        step, peak = peer.step(ask.problem, shard, ask.backward), None
    return Answer(step if ask.tensors else Step(step.readings, step.sent, {}), peak)


def told(failure: BaseException) -> str:
    """Shorten an error to its kind and first words, without paths and addresses."""
    said = str(failure).strip().splitlines() or [""]
    text = re.sub(r"\[?/[\w./-]+\]?(:\d+\]?)?", "", f"{type(failure).__name__}: {said[0]}")
    text = re.sub(r"\s+", " ", text).strip(" :")
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"


def _silence() -> None:
    """Let a library's progress and warnings not stand between the lines of the table."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
