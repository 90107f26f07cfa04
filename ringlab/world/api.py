"""`World`: one program, run wherever its ranks shall live."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar

from ringlab.machine import Machine
from ringlab.price import price
from ringlab.timeline import Timeline

T = TypeVar("T")
Backend = Literal["virtual", "gloo", "nccl"]


class Runner(Protocol):
    """What a kind of world provides."""

    timeline: Timeline

    def run(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        timeout: float | None = None,
    ) -> list[Any]:
        """Run a function on every rank."""
        ...

    def close(self) -> None:
        """End the ranks."""
        ...


class World:
    """A number of ranks that run SPMD functions written with plain ``torch.distributed``.

    Parameters
    ----------
    size : int
        Number of ranks, at least 1.
    backend : {"virtual", "gloo", "nccl"}
        Where the ranks live: threads of this process that take turns (CPU and ``meta``
        tensors, deterministic, strict), CPU processes, or one GPU each.
    order : {"stream", "host"}
        Virtual world only: match operations by NCCL's rules (a group's unbatched operations
        are serialised, tags are ignored) or by gloo's (operations progress on their own, tags
        match).
    timeout : float
        Deadline in seconds. A call of a process world that takes longer is ended. A virtual
        rank is ended when it keeps its turn that long without calling into the world; real
        deadlocks are found at once, without it.
    seed : int
        In every run rank r starts with its random generators seeded with ``seed + r``.
    threads : int, optional
        Process worlds only: torch threads of each rank; by default the cores are shared out.
    share_gpu : bool
        NCCL only: allow more ranks than GPUs, which then exchange through host memory.
    processes : int, optional
        Virtual world only: spread the ranks over so many processes, each on a core of its own, to
        record hundreds of ranks in less time. The function must then have no effect but its
        result, and the ranks may exchange only ``meta`` tensors, point to point. A run that turns
        out to do more is done again in this process, with a warning.

    Attributes
    ----------
    timeline : Timeline
        What the last run computed, sent, received and waited for; of real ranks with times.

    Raises
    ------
    ValueError
        For a size below 1, an unknown backend or order, or an option of another backend.

    Notes
    -----
    Virtual ranks take turns: one runs until it blocks in ``torch.distributed``, asks whether
    an operation is done, returns or raises. So two runs are equal to the last bit, and a rank
    that can never go on is noticed at once. What blocks elsewhere, as a sleep, a lock or a
    thread of the program's own, keeps the turn and meets the deadline; only the thread of a
    rank may communicate. A callback of a future runs in the wait for it. Runs that several
    threads start follow one another. While one lasts, other threads of the process cannot
    use functional collectives on groups of the process's own.

    Of a virtual rank every operator is recorded, and compared with the buffers in flight: what
    an operation that has not been waited for sends must not be written, and what it fills must
    be neither read nor written (``BufferHazard``). That holds byte by byte, for views of any
    strides, for `meta` tensors, in backward and in inference mode. Operators that use an index
    count as touching the whole tensor. What torch does not see (a numpy view, a pointer,
    ``tolist``, a loop that inductor compiles) is not recorded, and is compared only in the wait,
    by a checksum: a write is found there, while a read goes unnoticed and gets NaN (integers -1),
    with which a receive buffer is filled when the operation begins.

    Examples
    --------
    >>> import torch.distributed as dist
    >>> from ringlab import World
    >>> with World(3) as world:
    ...     world.run(lambda: dist.get_rank() * 10)
    [0, 10, 20]
    """

    def __init__(
        self,
        size: int,
        *,
        backend: Backend = "virtual",
        order: Literal["stream", "host"] | None = None,
        timeout: float = 60.0,
        seed: int = 0,
        threads: int | None = None,
        share_gpu: bool = False,
        processes: int | None = None,
    ) -> None:
        _check(size, backend, order, timeout, threads, share_gpu)
        _check_processes(size, backend, processes)
        self.size = size
        self.backend = backend
        self._runner = _runner(
            size, backend, order, timeout, seed, threads, share_gpu, processes or 1
        )

    @property
    def timeline(self) -> Timeline:
        """What the last run left behind."""
        return self._runner.timeline

    def run(
        self, fn: Callable[..., T], *args: Any, timeout: float | None = None, **kwargs: Any
    ) -> list[T]:
        """Call ``fn(*args, **kwargs)`` on every rank.

        Inside, the default process group of ``torch.distributed`` holds all ranks. Each rank
        gets its own copy of the arguments; what `fn` refers to otherwise is one object for all
        virtual ranks, and a copy for each rank in a process.

        Parameters
        ----------
        fn : callable
        *args, **kwargs
            Passed on to `fn`.
        timeout : float, optional
            Deadline for this call instead of the world's.

        Returns
        -------
        list
            What `fn` returned, one entry a rank, in rank order.

        Raises
        ------
        RankFailed
            If a rank raised or died; the message holds its traceback. A call that is wrong
            whatever the other ranks do raises ``BadCall`` in its rank.
        Deadlock, PeerLeft, MessageMismatch, BufferHazard, UnmatchedOperation, UnwaitedHandle
            Virtual world: the program breaks a rule of communication.
        HungRank
            If the deadline passed; the message says where each rank stood.
        """
        if timeout is not None:
            _check_timeout(timeout)
        return self._runner.run(fn, args, kwargs, timeout=timeout)

    def price(self, machine: Machine | str) -> Timeline:
        """Say how long the last run would have taken on a machine, event by event.

        Parameters
        ----------
        machine : Machine or str
            For example ``"8x h100-nvlink"``; see `ringlab.machine.names`.

        Returns
        -------
        Timeline
            What `timeline` holds, with times; see `ringlab.price.price`.

        Raises
        ------
        ValueError
            If this is not a virtual world (real ranks have times of their own, and leave no
            record of their operators), if the machine is unknown, or too small.
        UnpricedOperator
            If the run used an operator that has no formula for its FLOPs and bytes.
        """
        if self.backend != "virtual":
            raise ValueError(
                f"a price needs the recording of a virtual world; this one is {self.backend!r}. "
                f"Run the same function in World({self.size}) and price that."
            )
        return price(self.timeline, machine)

    def close(self) -> None:
        """End the ranks. The world can be used again; it then starts new ones."""
        self._runner.close()

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"World({self.size}, backend={self.backend!r})"


def _check(size: int, backend: str, order: str | None, timeout: float, threads: int | None,
           share_gpu: bool) -> None:  # fmt: skip
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"a world needs at least 1 rank; size is {size!r}.")
    if backend not in ("virtual", "gloo", "nccl"):
        raise ValueError(f"backend {backend!r} is unknown; choose 'virtual', 'gloo' or 'nccl'.")
    if order not in (None, "stream", "host"):
        raise ValueError(
            f"order {order!r} is unknown; choose 'stream' (NCCL's rules) or 'host' (gloo's)."
        )
    if order is not None and backend != "virtual":
        raise ValueError(
            f"order={order!r} chooses the rules of the virtual world; {backend} has its own."
        )
    _check_timeout(timeout)
    if threads is not None and (backend == "virtual" or threads < 1):
        raise ValueError(
            f"threads={threads!r}: a positive number, for the process worlds only (virtual ranks "
            "take turns and share torch's threads)."
        )
    if share_gpu and backend != "nccl":
        raise ValueError(f"share_gpu is for backend 'nccl', not {backend!r}.")


def _check_processes(size: int, backend: str, processes: int | None) -> None:
    if processes is None:
        return
    if backend != "virtual":
        raise ValueError(
            f"processes={processes!r} spreads virtual ranks; with backend {backend!r} each rank is "
            "a process anyway."
        )
    if isinstance(processes, bool) or not isinstance(processes, int):
        raise ValueError(f"processes is {processes!r}; it is a whole number.")
    if not 1 <= processes <= size:
        raise ValueError(f"processes is {processes}; of {size} ranks there can be 1 to {size}.")


def _check_timeout(timeout: float) -> None:
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout!r}; it must be a positive number of seconds.")


def _runner(size: int, backend: Backend, order: Any, timeout: float, seed: int,
            threads: int | None, share_gpu: bool, processes: int) -> Runner:  # fmt: skip
    if backend == "virtual" and processes > 1:
        from ringlab.world.divided import DividedRunner

        return DividedRunner(
            size, order=order or "stream", timeout=timeout, seed=seed, processes=processes
        )
    if backend == "virtual":
        from ringlab.world.virtual import VirtualRunner

        return VirtualRunner(size, order=order or "stream", timeout=timeout, seed=seed)
    from ringlab.world.processes import ProcessRunner

    runner: Runner = ProcessRunner(
        size, backend=backend, timeout=timeout, seed=seed, threads=threads, share_gpu=share_gpu
    )
    return runner
