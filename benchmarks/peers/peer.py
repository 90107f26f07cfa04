"""What a library must offer to be compared: start, the order of its tokens, and attention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version

import torch.distributed as dist
from torch import Tensor

from benchmarks.peers.problem import RESULTS, Problem
from benchmarks.peers.wire import sent
from ringlab.bench.readings import Reading, Stopwatch
from ringlab.layout import Contiguous, Layout, ZigZag

FORWARD, BOTH = "forward", "forward and backward"


@dataclass(frozen=True)
class Step:
    """What one rank found in one run.

    Attributes
    ----------
    readings : mapping of str to Reading
        For `FORWARD` and, if backward was asked for, `BOTH`.
    sent : mapping of str to int or None
        Bytes that the rank sent in each.
    tensors : dict of str to Tensor
        Of this rank's tokens, `RESULTS` as far as they were computed.
    """

    readings: dict[str, Reading]
    sent: dict[str, int | None]
    tensors: dict[str, Tensor]


class Peer(ABC):
    """A library, as a rank runs it.

    Attributes
    ----------
    name : str
        In the table.
    package : str
        The distribution whose version is told.
    how : str
        What is called, and what had to be changed to run it on a CPU.
    why : str
        Why it errs or fails where it does, as far as its sources tell.
    ranks, threads : int
        Processes, and torch threads of each.
    counted : bool
        Whether what it holds are tensors of torch, whose bytes can be counted.
    timed : bool
        Whether it runs enough on a CPU to be timed; otherwise it is only examined.
    """

    name: str
    package: str
    how: str
    why: str = ""
    ranks: int = 2
    threads: int = 1
    counted: bool = True
    timed: bool = True

    @property
    def version(self) -> str:
        """The version that is installed."""
        return version(self.package)

    def start(self) -> None:  # noqa: B027  most need nothing
        """Import the library, once in every rank, after the process group is made."""

    def layout(self, problem: Problem) -> Layout:
        """Which tokens each rank holds; contiguous unless the library says otherwise."""
        return Contiguous()

    def around(self, problem: Problem) -> AbstractContextManager[object]:
        """Open what the library wants to be open during forward and backward."""
        return nullcontext()

    @abstractmethod
    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend from this rank's tokens, [1, H, L_rank, D]; the result has an autograd graph."""

    def load(self, problem: Problem) -> tuple[Tensor, ...]:
        """Make q, k, v and the gradient of the output, of this rank's tokens."""
        layout, rank, size = self.layout(problem), dist.get_rank(), dist.get_world_size()
        return tuple(layout.shard(x, rank, size).contiguous() for x in problem.tensors())

    def step(self, problem: Problem, shard: tuple[Tensor, ...], backward: bool) -> Step:
        """Run it once. Ranks begin together; backward follows forward at once."""
        q, k, v = (x.detach().requires_grad_() for x in shard[:3])
        dist.barrier()
        before = sent()
        with self.around(problem):
            with Stopwatch() as watch:
                out = self.attend(problem, q, k, v)
            if out.shape != q.shape:
                raise ValueError(f"of q {list(q.shape)} came out {list(out.shape)}")
            readings = {FORWARD: watch.reading}
            traffic = {FORWARD: _since(before)}
            if backward:
                with Stopwatch() as second:
                    out.backward(shard[3])
                readings[BOTH] = _in_turn(watch.reading, second.reading)
                traffic[BOTH] = _since(before)
        found = (out.detach(), q.grad, k.grad, v.grad)
        named = zip(RESULTS, found, strict=True)
        return Step(readings, traffic, {name: x for name, x in named if x is not None})


class Balanced(Peer):
    """A library that deals a causal problem out in zig-zag order."""

    def layout(self, problem: Problem) -> Layout:
        """Zig-zag if causal, else contiguous."""
        return ZigZag() if problem.causal else Contiguous()


def _in_turn(first: Reading, second: Reading) -> Reading:
    return Reading(first.wall + second.wall, first.cpu + second.cpu)


def _since(before: int | None) -> int | None:
    after = sent()
    return None if before is None or after is None else after - before


Factory = Callable[[], Peer]
"""A peer is made anew in each rank, which alone imports the library."""
