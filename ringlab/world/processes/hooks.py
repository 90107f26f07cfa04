"""Where a rank's operations are noted: in the methods of ``ProcessGroup`` and ``Work``.

They are replaced on the classes, once, in a process that is a rank and nothing else. The
public functions of ``torch.distributed`` stay as they are, because torch compares some of
them by identity.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ringlab.timeline.regions import listen
from ringlab.world.processes import functional
from ringlab.world.processes.last_op import Journal
from ringlab.world.processes.operations import METHODS


def install(journal: Journal) -> None:
    """Note every operation of this process in `journal`. Called once, in a rank."""
    note_group(journal, dist.ProcessGroup)
    after(dist.ProcessGroup, "_start_coalescing", lambda *_: journal.coalesce())
    after(dist.ProcessGroup, "_end_coalescing", lambda _, work: journal.coalesced(work))
    note_work(journal, dist.Work)
    after(dist.Work, "is_completed", lambda work, over: journal.seen_over(work) if over else None)
    listen(journal.recorder.boundary)
    functional.install(journal)


def note_group(journal: Journal, owner: type[dist.ProcessGroup]) -> None:
    """Note what the groups of a class are asked."""
    for name in METHODS:
        if hasattr(owner, name):
            setattr(owner, name, _noting(journal, getattr(owner, name), name))


def note_work(journal: Journal, owner: type[dist.Work]) -> None:
    """Note when handles of a class are waited for; to ask for the future counts as a wait."""
    for name in ("wait", "synchronize", "get_future"):
        setattr(owner, name, _waiting(journal, getattr(owner, name)))


def _waiting(journal: Journal, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
        notes = journal.waits(work)
        try:
            result = original(work, *args, **kwargs)
        except BaseException:
            journal.gave_up(notes)
            raise
        journal.waited(work, notes)
        return result

    return method


def _noting(journal: Journal, original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(group: dist.ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        inside = group not in c10d._world.pg_map  # the gloo group that a staged group uses
        if journal.muted or inside or torch.compiler.is_compiling():
            return original(group, *args, **kwargs)
        entry = journal.issue(group, name, args)
        try:
            work = original(group, *args, **kwargs)
        except BaseException:
            journal.refused(entry)
            raise
        journal.issued(entry, work)
        return work

    return method


def after(owner: type, name: str, act: Callable[[Any, Any], object]) -> None:
    """Call ``act(self, result)`` whenever a method of `owner` has returned."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        act(self, result)
        return result

    setattr(owner, name, method)
