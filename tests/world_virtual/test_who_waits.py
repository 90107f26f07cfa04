"""Who waits for whom, as data on the error: what a picture of a deadlock is drawn from."""

from __future__ import annotations

import pickle

import pytest
import torch
import torch.distributed as dist

from ringlab.world.errors import Deadlock, PeerLeft, Wait
from tests.world_virtual.verdicts import ORDERS, error_of, line_of


def ring_of_sends():
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.send(torch.ones(1), (rank + 1) % size)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_cycle_is_told_arrow_by_arrow_with_operation_and_line(size, order):
    error = error_of(Deadlock, ring_of_sends, size, order=order)
    line = line_of(ring_of_sends, "dist.send")
    after = [(rank + 1) % size for rank in range(size)]
    assert error.waits == tuple(
        Wait(rank, after[rank], f"send to rank {after[rank]}", line) for rank in range(size)
    )


def crossed_groups():
    rank = dist.get_rank()
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
    for group in groups if rank == 0 else groups[::-1]:
        dist.all_reduce(torch.ones(1), group=group)


def test_a_rank_that_waits_in_a_collective_waits_for_the_member_that_is_missing():
    error = error_of(Deadlock, crossed_groups, 2)
    assert [(w.rank, w.other) for w in error.waits] == [(0, 1), (1, 0)]
    assert {w.operation for w in error.waits} == {"all_reduce over ranks [0, 1]"}


kept: list = []


def behind_a_cycle():
    """Ranks 0 and 1 leave two lines that block each other, and return; rank 2 waits behind."""
    rank = dist.get_rank()
    x, y, z = torch.ones(1), torch.ones(1), torch.ones(1)
    if rank < 2:
        kept.extend([dist.isend(x, 1 - rank), dist.irecv(y, 1 - rank)])
    if rank == 0:
        kept.append(dist.isend(z, 2))
    if rank == 2:
        dist.recv(x, 0)


def test_the_arrows_of_the_cycle_come_first_and_those_that_lead_to_it_follow():
    error = error_of(Deadlock, behind_a_cycle, 3)
    kept.clear()
    assert [(w.rank, w.other) for w in error.waits] == [(0, 1), (1, 0), (2, 0)]
    assert tuple(w.rank for w in error.waits[: len(error.cycle)]) == error.cycle


def chain_to_one_who_left():
    rank = dist.get_rank()
    if rank < 2:
        dist.recv(torch.ones(1), rank + 1)


@pytest.mark.parametrize("order", ORDERS)
def test_the_way_to_a_rank_that_left_ends_there(order):
    error = error_of(PeerLeft, chain_to_one_who_left, 3, order=order)
    line = line_of(chain_to_one_who_left, "dist.recv")
    assert error.waits[-1] == Wait(1, 2, "recv from rank 2", line)
    assert all(
        w.other == after.rank for w, after in zip(error.waits, error.waits[1:], strict=False)
    )


def test_the_arrows_survive_pickling():
    error = error_of(Deadlock, ring_of_sends, 3)
    again = pickle.loads(pickle.dumps(error))
    assert (again.waits, again.cycle, str(again)) == (error.waits, error.cycle, str(error))
