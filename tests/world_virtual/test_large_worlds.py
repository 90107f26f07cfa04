"""More ranks than the quick look follows: nothing is missed, nothing overflows, one core."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from ringlab import World
from ringlab.world.errors import Deadlock, PeerLeft
from ringlab.world.virtual import lookout
from ringlab.world.virtual.one_core import last_core, stay_on
from ringlab.world.virtual.waiting import DEPTH, SHORT_DEPTH, QuickLook


def pass_on(rank, source, target, count=1):
    """Receive from one rank and send to another, in one batch."""
    for _ in range(count):
        ops = [dist.P2POp(dist.isend, torch.zeros(1), target)] if target is not None else []
        if source is not None:
            ops.append(dist.P2POp(dist.irecv, torch.zeros(1), source))
        for work in dist.batch_isend_irecv(ops):
            work.wait()


def chain(size):
    """All wait for the rank before, and the first for the last, which begins in the end."""
    rank = dist.get_rank()
    if rank == size - 1:
        dist.send(torch.zeros(1), 0)
    dist.recv(torch.zeros(1), (rank - 1) % size)
    if rank < size - 1:
        dist.send(torch.zeros(1), rank + 1)
    return rank


def test_a_chain_of_many_ranks_resolves():
    assert World(600).run(chain, 600) == list(range(600))


@pytest.mark.parametrize(("size", "depth"), [(DEPTH - 4, DEPTH), (3 * DEPTH, SHORT_DEPTH)])
def test_the_quick_look_follows_a_chain_only_so_far(monkeypatch, size, depth):
    followed = []

    def watched(self, rank):
        cleared = clears(self, rank)
        followed.append(len(self._lines))
        return cleared

    clears = QuickLook.clears
    monkeypatch.setattr(QuickLook, "clears", watched)
    monkeypatch.setattr(lookout, "DEPTH", 10**6)  # so that it looks each time
    World(size).run(chain, size)
    assert min(size, depth) - 4 <= max(followed) <= depth + 1


@pytest.mark.parametrize("rounds", [0, 3])
def test_a_circle_of_more_ranks_than_the_quick_look_follows_is_a_deadlock(rounds):
    size = 2 * DEPTH

    def circle():
        rank = dist.get_rank()
        pass_on(rank, (rank - 1) % size, (rank + 1) % size, rounds)
        dist.recv(torch.zeros(1), (rank - 1) % size)
        dist.send(torch.zeros(1), (rank + 1) % size)

    with pytest.raises(Deadlock) as caught:
        World(size).run(circle)
    assert len(caught.value.waits) == size


def test_a_long_chain_behind_a_rank_that_left_is_reported_while_others_go_on():
    size = 3 * DEPTH

    def some():
        rank = dist.get_rank()
        if rank == 0:
            return
        if rank < 2 * DEPTH:
            dist.recv(torch.zeros(1), rank - 1)
            return
        first, others = 2 * DEPTH, DEPTH
        neighbours = [first + (rank - first + shift) % others for shift in (-1, 1)]
        pass_on(rank, *neighbours, count=100)
        posted.append(rank)

    posted: list[int] = []
    with pytest.raises(PeerLeft):
        World(size).run(some)
    assert not posted, "the others went through all their hops before anybody noticed"


@pytest.mark.procfs
@pytest.mark.usefixtures("one_thread")
def test_many_ranks_share_one_core_and_leave_the_caller_alone():
    before = os.sched_getaffinity(0)
    cores = World(DEPTH + 1).run(lambda: frozenset(os.sched_getaffinity(0)))
    assert len(set(cores)) == 1
    assert len(cores[0]) == 1
    assert os.sched_getaffinity(0) == before
    few = World(4).run(lambda: frozenset(os.sched_getaffinity(0)))
    assert set(few) == {frozenset(before)}


def test_a_thread_stays_where_nobody_can_tell_its_core(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "1 (a name) R 1 2")
    assert last_core() is None
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.append(stay_on(None)))
    thread.start()
    thread.join()
    assert seen == [None]
