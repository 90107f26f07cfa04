"""Waiting for a rank that has returned, and asking for ever."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import Deadlock, PeerLeft
from ringlab.world.virtual import scheduler
from tests.world_virtual.verdicts import ORDERS, error_of, verdict


def left_early():
    if dist.get_rank() == 0:
        dist.recv(torch.ones(1), 1)


def left_before_a_collective():
    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(1))


def left_in_a_chain():
    rank = dist.get_rank()
    if rank < 3:
        dist.recv(torch.ones(1), rank + 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("program", "size", "gone"),
    [(left_early, 2, 1), (left_before_a_collective, 3, 2), (left_in_a_chain, 4, 3)],
)
def test_waiting_for_a_rank_that_has_returned_is_an_error_of_its_own(program, size, gone, order):
    error = error_of(PeerLeft, program, size, order=order)
    assert str(error).startswith(f"rank {gone} has returned, and will never do its part:")
    assert f"waits for rank {gone}: " in str(error)


def returned_with_its_part_posted(works):
    x = torch.ones(1)
    if dist.get_rank() == 0:
        works.append(dist.isend(x, 1))
    else:
        dist.recv(x, 0)


def test_what_a_rank_posted_before_it_returned_still_counts():
    assert verdict(returned_with_its_part_posted, 2, []) == "UnwaitedHandle"


def poll_each_other():
    rank = dist.get_rank()
    work = dist.isend(torch.ones(1), 1 - rank)
    while not work.is_completed():
        pass
    dist.recv(torch.ones(1), 1 - rank)


def poll_for_one_who_waits():
    rank = dist.get_rank()
    x = torch.ones(1)
    if rank == 0:
        work = dist.irecv(x, 1)
        while not work.is_completed():
            pass
        work.wait()
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
        dist.send(x, 0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("program", [poll_each_other, poll_for_one_who_waits])
def test_ranks_that_ask_for_ever_whether_they_are_done_are_a_cycle_too(program, order):
    assert error_of(Deadlock, program, 2, order=order).cycle == (0, 1)


def poll_for_one_who_left():
    if dist.get_rank() == 0:
        work = dist.irecv(torch.ones(1), 1)
        while not work.is_completed():
            pass


def test_asking_for_what_a_rank_that_has_returned_never_sends():
    assert verdict(poll_for_one_who_left, 2) == "PeerLeft"


def poll_patiently():
    rank = dist.get_rank()
    busy = dist.new_group([1, 2])
    x, asked = torch.ones(1), 0
    if rank == 0:
        work = dist.irecv(x, 1)
        while not work.is_completed():
            asked += 1
        work.wait()
        return asked
    for _ in range(50):
        dist.all_reduce(x, group=busy)
    if rank == 1:
        dist.send(x, 0)
    return x[0].item()


def test_polling_is_not_waiting_as_long_as_somebody_does_something_else(monkeypatch):
    monkeypatch.setattr(scheduler, "HOPELESS", 5)
    asked, *values = World(3).run(poll_patiently)
    assert asked > 10
    assert values == [2.0**50, 2.0**50]
