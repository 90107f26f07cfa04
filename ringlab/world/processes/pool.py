"""`ProcessRunner`: ranks that are processes, kept between runs, replaced when one fails."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TextIO

import torch
import torch.distributed as dist

from ringlab.host import cores
from ringlab.timeline import Timeline
from ringlab.world.ambient import Ambient
from ringlab.world.errors import RankFailed, WorldError
from ringlab.world.processes import calls, checks, gpus, messages, pickling, report, surroundings
from ringlab.world.processes.generation import Generation
from ringlab.world.processes.handle import Rank
from ringlab.world.processes.joining import joined
from ringlab.world.processes.messages import Call, Setup
from ringlab.world.processes.output import Relay, Show
from ringlab.world.processes.recorder import EVENT_LIMIT, Recording
from ringlab.world.processes.rendezvous import host_store
from ringlab.world.processes.shield import shielded
from ringlab.world.source import is_library


class ProcessRunner:
    """Runs functions on ranks that are processes of their own.

    The ranks begin to start when this object is made; the first run waits for them. They
    stay for later runs. A run that fails ends them, and the next run starts others. They end
    with :meth:`close`, when this object is collected, and with this process, however it ends.

    Parameters
    ----------
    size : int
        Number of ranks.
    backend : {"gloo", "nccl"}
        CPU processes, or one GPU each. NCCL ranks have their GPU as default device, and
        tensors that are passed to a run arrive there.
    timeout : float
        Deadline of a run in seconds; ``float("inf")`` for none.
    seed : int
        In every run rank r starts with its random generators seeded with ``seed + r``.
    threads : int, optional
        Torch threads of each rank; by default the cores of this machine are shared out.
    share_gpu : bool
        NCCL only: allow more ranks than GPUs, which then exchange through host memory.
    stream : file object, optional
        Where the ranks' output goes; by default ``sys.stdout`` at the time of the run.
    show : {"ordered", "live"}
        ``"ordered"``: output comes in rank order, the same in every run: rank 0's as it
        prints, that of another when the ranks below it are done (or have kept it waiting for
        10 s). ``"live"``: every line at once, in whatever order they come.

    Attributes
    ----------
    timeline : Timeline
        What the last run computed, sent, received and waited for, with times, rank by rank.
        Operations that C++ issues by itself, as DDP does, are not seen.

    Raises
    ------
    ValueError
        If an argument is out of range, or there are fewer GPUs than ranks.
    WorldError
        If this system cannot run ranks as processes.

    Notes
    -----
    Functions and classes may be defined anywhere, notebook cells included; arguments and
    results are copied. A tensor travels as its values, shape, strides and ``requires_grad``;
    the graph that computed it and storage shared with other tensors do not, and results from
    GPUs arrive in CPU memory. A run finds the environment variables, working directory, import
    path, grad mode, autocast and default dtype of the caller, and no process group but
    the default one. Modules stay imported from run to run: after editing one, :meth:`close`.

    Everything listens on the loopback address only, and nothing unpickles what comes from a
    socket. The exception is torch's own ``*_object`` collectives, when a program uses them:
    on a machine shared with people you do not trust, do not.
    """

    def __init__(
        self,
        size: int,
        *,
        backend: Literal["gloo", "nccl"] = "gloo",
        timeout: float = 60.0,
        seed: int = 0,
        threads: int | None = None,
        share_gpu: bool = False,
        stream: TextIO | None = None,
        show: Show = "ordered",
    ) -> None:
        checks.options(size, backend, timeout, threads, show)
        self.size, self.backend, self.timeout, self.seed = size, backend, timeout, seed
        self.timeline = Timeline(size)
        self._threads = threads or max(1, cores() // size)
        self._kind: str = backend
        self._devices: list[int | None] = [None] * size
        if backend == "nccl":
            self._kind, self._devices = gpus.assign(size, share_gpu)  # type: ignore[assignment]  # list[int] is read only here
        self._stream, self._show = stream, show
        self._relay = Relay(size, show, stream)
        self._lock = threading.Lock()
        self._runs_in: int | None = None
        self._owner = os.getpid()
        self._generation: Generation | None = None
        self._start()

    @property
    def output(self) -> list[str]:
        """What each rank printed in the last run, without labels."""
        return self._relay.texts

    @property
    def pids(self) -> list[int]:
        """Process ids of the ranks that live; empty after a failure or `close`."""
        ranks = self._generation.ranks if self._generation else []
        return [rank.pid for rank in ranks if rank.pid is not None and not rank.gone]

    def run(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Any]:
        """Call ``fn(*args, **kwargs)`` on every rank, with ``torch.distributed`` initialised.

        Parameters
        ----------
        fn : callable
        args : tuple
        kwargs : dict, optional
        timeout : float, optional
            Deadline in seconds for this run instead of the world's. The start of the ranks
            does not count.

        Returns
        -------
        list
            What `fn` returned, one entry a rank, in rank order.

        Raises
        ------
        TypeError
            If the function or its arguments cannot leave this process.
        RankFailed
            If a rank raised or died: the one that failed first.
        HungRank
            If the deadline passed; the message says where each rank stood.
        KeyboardInterrupt
            If the user interrupted; the message says where each rank stood.
        """
        limit = self.timeout if timeout is None else timeout
        checks.deadline(limit)
        with self._one_at_a_time():
            try:
                body, sources = pickling.dumps((fn, args, kwargs or {}))
            except TypeError as error:
                raise TypeError(f"the function or its arguments {error}") from error
            header = Call(
                surroundings=surroundings.of_this_process(),
                sources=sources,
                ambient=Ambient(),
                dtype=torch.get_default_dtype(),
                seed=self.seed,
            )
            try:
                return self._run(messages.pack(header, body), limit)
            except BaseException:
                self._discard()
                raise

    def _run(self, message: list[memoryview], timeout: float) -> list[Any]:
        relay = self._relay = Relay(self.size, self._show, self._stream)
        generation = self._ready(relay)
        generation.post(message)
        try:
            calls.wait_for_answers(generation, relay, timeout)
        finally:
            self.timeline = joined([_recording(rank) for rank in generation.ranks])
            relay.close()
        results = [_result(rank) for rank in generation.ranks]
        if leftovers := report.leftovers(generation.ranks):
            self._discard()
            _warn(leftovers)
        if any(_recording(rank).truncated for rank in generation.ranks):
            _warn(f"the timeline holds only the first {EVENT_LIMIT:,} events of each rank.")
        return results

    def close(self) -> None:
        """End the ranks. A later run starts others."""
        self._discard()

    def _start(self) -> None:
        try:
            with shielded():
                store, port = host_store(self.size)
                shared = surroundings.of_this_process()
                setups = [
                    Setup(rank, self.size, self._kind, port, self._threads, device, shared)
                    for rank, device in enumerate(self._devices)
                ]
                self._generation = Generation(setups, store)
        except (OSError, dist.DistError) as error:
            raise WorldError(
                f"could not start {self.size} ranks: {error}. Where too many files are open, "
                "close other worlds or raise the limit (ulimit -n)."
            ) from None

    def _ready(self, relay: Relay) -> Generation:
        """Ranks that wait for a call; others than before if those are gone."""
        if self._owner != os.getpid():  # in a fork of the process that started them
            self._generation, self._owner = None, os.getpid()
        if self._generation is not None:
            self._generation.pump(0.0, relay)
            if any(rank.gone for rank in self._generation.ranks):
                self._discard()
        if self._generation is None:
            self._start()
        assert self._generation is not None
        try:
            calls.wait_until_ready(self._generation, relay)
        except BaseException:
            relay.close()  # what the ranks said about it
            raise
        return self._generation

    def _discard(self) -> None:
        with shielded():
            generation, self._generation = self._generation, None
            if generation is not None:
                generation.close()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Let runs from several threads take turns; refuse one from inside another."""
        me = threading.get_ident()
        if self._runs_in == me:
            raise WorldError("this world is running; a run cannot start another one on it.")
        with self._lock:
            self._runs_in = me
            try:
                yield
            finally:
                self._runs_in = None


def _result(rank: Rank) -> Any:
    try:
        return pickling.loads(rank.result)
    except Exception as error:
        raise RankFailed(
            rank.number, f"its result cannot be read here: {type(error).__name__}: {error}"
        ) from error


def _recording(rank: Rank) -> Recording:
    source = rank.reply or rank.standing
    return source.recording if source else Recording([])


def _warn(text: str) -> None:
    """Warn about the line of the user's program that called into this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and is_library(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)
