"""What a rank asked of its process groups, and which of it is not finished yet.

On gloo the line at which a rank stands tells what it waits for. On NCCL it does not: the
host runs ahead of the GPU, passes ``wait()`` and stands somewhere else when an operation
hangs. So every operation is noted where all of them pass, in the methods of
``ProcessGroup`` (``hooks.py``), with the line that issued it; the same notes become the
timeline. Functional collectives pass through operators instead (``functional.py``). What passes
through neither is not seen: operations that C++ issues by itself, as DDP does.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from ringlab.world.processes.clocks import Clock, HostClock
from ringlab.world.processes.entries import Entry
from ringlab.world.processes.operations import understand
from ringlab.world.processes.recorder import Recorder
from ringlab.world.source import site_in_rank

_BATCH = inspect.unwrap(dist.batch_isend_irecv).__code__

DEPTH = 32
"""Frames between ``batch_isend_irecv`` and the group: each mode of torch's around adds three."""

LEFTOVERS = 4
"""Lines of the program that a warning names for each rank."""


class Journal:
    """The operations of one rank, since the run began.

    Parameters
    ----------
    rank : int
    clock : Clock
        By default the host's.
    """

    def __init__(self, rank: int = 0, clock: Clock | None = None) -> None:
        self.muted = False
        self.recorder = Recorder(rank, clock or HostClock())
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
        self.recorder.begin()
        self._last: Entry | None = None
        self._open: dict[int, Entry] = {}
        self._serial = itertools.count()
        self._launches = itertools.count()
        self._batch: tuple[int, int, int] = (0, 0, -1)  # identity, operations to come, launch
        self._coalescing: list[Entry] | None = None
        self._by_work: dict[int, tuple[weakref.ref[Any], list[Entry]]] = {}
        self._by_tensor: dict[int, Entry] = {}

    def issue(self, group: dist.ProcessGroup, method: str, args: tuple[Any, ...]) -> Entry:
        """Note an operation that is about to be issued."""
        now = self.recorder.interrupt()
        ranks = tuple(dist.get_process_group_ranks(group))
        operation = understand(method, args, group.rank(), group.size())
        launch = self._launch(sys._getframe(1))
        entry = Entry(operation, ranks, next(self._serial), launch, site_in_rank())
        for older in list(self._open.values()):
            if older.gpu_work is None or not older.finished:
                break
            self.close(older)
        self._open[entry.serial] = self._last = entry
        self.recorder.issue(entry, now)
        return entry

    def issued(self, entry: Entry, work: Any) -> None:
        """Note the handle that the operation returned, or that it returned none."""
        if self._coalescing is not None:
            self._coalescing.append(entry)
        elif work is None:
            self._without_handle(entry)
        else:
            self._track(work, [entry])
        self.recorder.resume(entry.site)

    def promised(self, entry: Entry, tensors: list[int]) -> None:
        """Note that there is no handle: the operation is waited for by any of its results."""
        self._by_tensor.update(dict.fromkeys(tensors, entry))
        self.recorder.resume(entry.site)

    def waits_for_tensor(self, tensor: int) -> list[Any]:
        """Note that the program begins to wait for a result; give the notes on."""
        entry = self._by_tensor.get(tensor)
        return self.recorder.waits([entry]) if entry else []

    def waited_for_tensor(self, tensor: int, notes: list[Any]) -> None:
        """Note that a result is there."""
        entry = self._by_tensor.pop(tensor, None)
        if entry is not None:
            entry.waited = True
            self.close(entry)
            self._resume_after(notes)

    def refused(self, entry: Entry) -> None:
        """Note that the call raised."""
        self.close(entry)
        self.recorder.arrived(entry)
        self.recorder.resume(entry.site)

    def close(self, entry: Entry) -> None:
        """Stop watching an operation: it is over."""
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

    def waits(self, work: Any) -> list[Any]:
        """Note that the program begins to wait for a handle; give the notes to `waited`."""
        _, entries = self._by_work.get(id(work), (None, []))
        return self.recorder.waits(entries) if entries else []

    def waited(self, work: Any, notes: list[Any]) -> None:
        """Note that the program has waited for a handle."""
        self.done(work)
        self._resume_after(notes)

    def gave_up(self, notes: list[Any]) -> None:
        """Note that a wait raised: what it waited for never ended."""
        if notes:
            self.recorder.resume(notes[0].site)

    def _resume_after(self, notes: list[Any]) -> None:
        if notes:
            self.recorder.waited(notes)
            self.recorder.resume(notes[0].site)

    def seen_over(self, work: Any) -> None:
        """Note that the program has asked, and knows that what a handle stands for is over."""
        self.done(work)
        for entry in self._by_work.get(id(work), (None, []))[1]:
            self.recorder.arrived(entry)

    def done(self, work: Any) -> None:
        """Note that what a handle stands for is over, or on the GPU ordered before the rest."""
        _, entries = self._by_work.get(id(work), (None, []))
        for entry in entries:
            entry.waited = True
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
        self.recorder.arrived(entry)
        if entry.operation.on_gpu and not torch.cuda.is_current_stream_capturing():
            entry.gpu_work = torch.cuda.Event()
            entry.gpu_work.record()
        else:
            self.close(entry)

    def _found_sender(self, entry: Entry, work: Any) -> None:
        with suppress(RuntimeError):  # it is not over: `get_future` does not wait
            entry.sender = work._source_rank()

    def _launch(self, frame: FrameType | None) -> int:
        """The launch that an operation belongs to: one for a whole ``batch_isend_irecv``."""
        for _ in range(DEPTH):
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
