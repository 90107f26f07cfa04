"""What a rank asked of its process groups, and which of it is not finished yet.

On gloo the line at which a rank stands tells what it waits for. On NCCL it does not: the
host runs ahead of the GPU, passes ``wait()`` and stands somewhere else when an operation
hangs. So every operation is noted where all of them pass, in the methods of
``ProcessGroup`` (``hooks.py``), with the line that issued it; the same notes become the
timeline. What never passes there is not seen: operations that C++ issues by itself, as
functional collectives and DDP do.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from ringlab.timeline import Event
from ringlab.world.processes.operations import Operation, understand
from ringlab.world.source import Site, current_site

_BATCH = inspect.unwrap(dist.batch_isend_irecv).__code__

EVENT_LIMIT = 100_000
"""Events a rank keeps in one run; a long training run would fill the memory with them."""

LEFTOVERS = 4
"""Lines of the program that a warning names for each rank."""


@dataclass(eq=False)
class Entry:
    """An operation that a rank has issued.

    Attributes
    ----------
    ranks : tuple of int
        World ranks of its group.
    gpu_work : object
        For an operation that the GPU carries out: what to ask whether it is complete.
    waited : bool
        Whether the program has waited for it.
    sender : int or None
        Group rank from which a receive from any rank was served.
    event : int
        Index of its event; -1 if there is none.
    """

    operation: Operation
    ranks: tuple[int, ...]
    serial: int
    launch: int
    site: Site
    gpu_work: Any = None
    waited: bool = False
    sender: int | None = None
    event: int = -1

    @property
    def peer(self) -> int | None:
        """World rank at the other end of a message; of a receive from any, once it is over."""
        member = self.sender if self.operation.peer is None else self.operation.peer
        return None if member is None else self.ranks[member]

    @property
    def finished(self) -> bool:
        """Whether it is known to be complete."""
        if self.gpu_work is None:
            return self.waited
        work = self.gpu_work
        return bool(work.query() if isinstance(work, torch.cuda.Event) else work.is_completed())

    def __str__(self) -> str:
        op = self.operation
        size = max(op.sent, op.received)
        if op.kind == "collective":
            what = f"{op.name} over ranks {list(self.ranks)}"
        else:
            other = "any rank" if self.peer is None else f"rank {self.peer}"
            what = f"{op.name} of {size:,} bytes {'to' if op.kind == 'send' else 'from'} {other}"
        return f"{what}, issued at {self.site}"


class Journal:
    """The operations of one rank, since the run began."""

    def __init__(self) -> None:
        self.muted = False
        self.begin()

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Note nothing: for what the world does on its own account."""
        self.muted = True
        try:
            yield
        finally:
            self.muted = False

    def begin(self) -> None:
        """Start afresh, for a new run."""
        self.events: list[Event] = []
        self.truncated = False
        self._last: Entry | None = None
        self._open: dict[int, Entry] = {}
        self._serial = itertools.count()
        self._launches = itertools.count()
        self._batch: tuple[int, int, int] = (0, 0, -1)  # identity, operations to come, launch
        self._coalescing: list[Entry] | None = None
        self._by_work: dict[int, tuple[weakref.ref[Any], list[Entry]]] = {}

    def issue(self, group: dist.ProcessGroup, method: str, args: tuple[Any, ...]) -> Entry:
        """Note an operation that is about to be issued."""
        ranks = tuple(dist.get_process_group_ranks(group))
        operation = understand(method, args, group.rank(), group.size())
        launch = self._launch(sys._getframe(1))
        entry = Entry(operation, ranks, next(self._serial), launch, current_site())
        for older in list(self._open.values()):
            if older.gpu_work is None or not older.finished:
                break
            self.close(older)
        self._open[entry.serial] = self._last = entry
        self._record(entry, operation.kind, operation.sent, operation.received)
        return entry

    def issued(self, entry: Entry, work: Any) -> None:
        """Note the handle that the operation returned, or that it returned none."""
        if self._coalescing is not None:
            self._coalescing.append(entry)
        elif work is None:
            self._without_handle(entry)
        else:
            self._track(work, [entry])

    def close(self, entry: Entry) -> None:
        """Stop watching an operation: it is over, or was refused."""
        self._open.pop(entry.serial, None)

    def coalesce(self) -> None:
        """The operations to come share the handle that the end of coalescing returns."""
        self._coalescing = []

    def coalesced(self, work: Any) -> None:
        """Note the handle of all operations since `coalesce`."""
        entries, self._coalescing = self._coalescing or [], None
        if work is not None:
            self._track(work, entries)
        for entry in entries if work is None else ():
            self._without_handle(entry)

    def waited(self, work: Any, record: bool = True) -> None:
        """Note that the program has waited for a handle."""
        _, entries = self._by_work.get(id(work), (None, []))
        for entry in entries:
            entry.waited = True
            if record:
                self._record(entry, "wait", 0, 0)
            if entry.operation.kind == "recv" and entry.operation.peer is None:
                self._found_sender(entry, work)
            if entry.gpu_work is None:
                self.close(entry)

    def unwaited(self) -> list[Entry]:
        """The operations for which the program has neither waited nor seen the end."""
        return [entry for entry in list(self._open.values()) if not entry.finished]

    def leftovers(self) -> list[str]:
        """The operations never waited for, in words; a few stand for many."""
        counts = Counter(map(str, self.unwaited()))
        lines = [text + f" ({n} times)" * (n > 1) for text, n in counts.items()]
        more = len(lines) - LEFTOVERS
        return lines[:LEFTOVERS] + ([f"and at {more} more lines"] if more > 0 else [])

    def in_words(self) -> str:
        """The oldest operation that is not finished, else the last one that was issued."""
        unfinished = self.unwaited()
        if unfinished:
            more = f" ({len(unfinished) - 1} more were issued after it)" * (len(unfinished) > 1)
            return f"not finished: {unfinished[0]}{more}"
        return f"last finished: {self._last}" if self._last else ""

    def _track(self, work: Any, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.operation.on_gpu:
                entry.gpu_work = work
        key = id(work)
        # A strong reference would keep alive what gloo cancels when the program drops it.
        reference = weakref.ref(work, lambda _: self._by_work.pop(key, None))
        self._by_work[key] = (reference, entries)

    def _without_handle(self, entry: Entry) -> None:
        """A blocking call: over on the host, perhaps not on the GPU."""
        entry.waited = True
        if entry.operation.on_gpu and not torch.cuda.is_current_stream_capturing():
            entry.gpu_work = torch.cuda.Event()
            entry.gpu_work.record()
        else:
            self.close(entry)

    def _found_sender(self, entry: Entry, work: Any) -> None:
        with suppress(RuntimeError):  # it is not over: `get_future` does not wait
            entry.sender = work._source_rank()
            if entry.event >= 0:
                self.events[entry.event] = self.events[entry.event]._replace(peer=entry.peer)

    def _launch(self, frame: FrameType | None) -> int:
        """The launch that an operation belongs to: one for a whole ``batch_isend_irecv``."""
        for _ in range(8):
            if frame is None:
                break
            if frame.f_code is _BATCH:
                identity, left, launch = self._batch
                if identity != id(frame) or left == 0:
                    left, launch = len(frame.f_locals["p2p_op_list"]), next(self._launches)
                self._batch = (id(frame), left - 1, launch)
                return launch
            frame = frame.f_back
        return next(self._launches)

    def _record(self, entry: Entry, kind: Any, sent: int, received: int) -> None:
        if len(self.events) >= EVENT_LIMIT:
            self.truncated = True
            return
        op, wait = entry.operation, kind == "wait"
        if not wait:
            entry.event = len(self.events)
        self.events.append(
            Event(dist.get_rank(), kind, op.name, entry.launch, entry.ranks, entry.peer, sent,
                  received, () if wait else op.shape, "" if wait else op.dtype,
                  (current_site() if wait else entry.site).place)
        )  # fmt: skip
