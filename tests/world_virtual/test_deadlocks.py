"""Cycles of ranks that wait for one another: found by rule, at once, with lines."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import Deadlock
from tests.world_virtual.verdicts import ORDERS, error_of, line_of, verdict


def ring_of_sends():
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = torch.ones(1), torch.ones(1)
    dist.send(x, (rank + 1) % size)
    dist.recv(y, (rank - 1) % size)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_ring_of_blocking_sends_is_a_cycle_of_all_ranks(size, order):
    error = error_of(Deadlock, ring_of_sends, size, order=order)
    assert error.cycle == tuple(range(size))
    chain = " -> ".join(map(str, [*range(size), 0]))
    assert str(error).startswith(f"ranks wait for one another: {chain}\n")


def test_the_report_shows_where_each_rank_issued_what_it_waits_for():
    text = str(error_of(Deadlock, ring_of_sends, 3))
    line = line_of(ring_of_sends, "dist.send")
    for rank in range(3):
        expected = f"  rank {rank} waits for rank {(rank + 1) % 3}: send to rank {(rank + 1) % 3}"
        assert f"{expected} at {line}: `dist.send(x, (rank + 1) % size)`" in text


def waits_elsewhere():
    other = 1 - dist.get_rank()
    work = dist.isend(torch.ones(1), other)
    x = torch.zeros(1)
    x += 1
    work.wait()
    dist.recv(x, other)


def test_the_report_shows_the_line_of_the_wait_if_it_is_another():
    text = str(error_of(Deadlock, waits_elsewhere, 2))
    assert line_of(waits_elsewhere, "dist.isend") in text
    assert f"waits at {line_of(waits_elsewhere, 'work.wait')}: `work.wait()`" in text


progress = []


def two_stuck_and_two_busy():
    """Ranks 1 and 2 block at once; ranks 0 and 3 could exchange messages for long."""
    rank = dist.get_rank()
    x = torch.ones(1)
    if rank in (1, 2):
        dist.recv(x, 3 - rank)
    for step in range(1000):
        if rank == 0:
            progress.append(step)
            dist.send(x, 3)
        elif rank == 3:
            dist.recv(x, 0)


@pytest.mark.parametrize("order", ORDERS)
def test_a_cycle_is_reported_at_once_even_when_other_ranks_could_go_on(order):
    progress.clear()
    assert error_of(Deadlock, two_stuck_and_two_busy, 4, order=order).cycle == (1, 2)
    assert len(progress) <= 2


def queue_closes_a_cycle():
    """Rank 1 never waits for 2, but its send to 2 stands before what rank 0 waits for."""
    rank = dist.get_rank()
    x, y = torch.ones(1), torch.ones(1)
    if rank == 0:
        dist.recv(x, 1)
        dist.send(x, 2)
    elif rank == 1:
        first = dist.isend(x, 2)
        second = dist.isend(x, 0)
        dist.recv(y, 3)
        for work in (first, second):
            work.wait()
    elif rank == 2:
        dist.recv(x, 0)
        dist.recv(x, 1)
    else:
        for _ in range(100):
            dist.all_reduce(x, group=alone[3])
        dist.send(x, 1)


alone = {}


def with_own_groups(program):
    def run():
        alone[dist.get_rank()] = dist.new_group([dist.get_rank()], use_local_synchronization=True)
        return program()

    return run


def test_a_cycle_through_what_a_rank_has_left_in_line_is_found_though_the_rank_could_go_on():
    error = error_of(Deadlock, with_own_groups(queue_closes_a_cycle), 4)
    assert error.cycle == (0, 1, 2)
    assert "rank 1 has posted its end behind an earlier operation: send to rank 0" in str(error)
    assert verdict(with_own_groups(queue_closes_a_cycle), 4, order="host") == "ok"


def nothing_behind_will_pass():
    """Rank 1 goes on for long, but whatever it posts to 0 comes behind its send to 2."""
    rank = dist.get_rank()
    pair = dist.new_group([1, 3])
    x = torch.ones(1)
    if rank == 0:
        dist.recv(x, 1)
        dist.send(x, 2)
    elif rank == 1:
        work = dist.isend(x, 2)
        for step in range(1000):
            progress.append(step)
            dist.barrier(group=pair)
        dist.send(x, 0)
        work.wait()
    elif rank == 2:
        dist.recv(x, 0)
        dist.recv(x, 1)
    else:
        for _ in range(1000):
            dist.barrier(group=pair)


def test_what_is_not_posted_yet_is_known_to_come_too_late():
    progress.clear()
    error = error_of(Deadlock, nothing_behind_will_pass, 4)
    assert error.cycle == (0, 1, 2)
    assert "whatever rank 1 posts next stands behind an earlier operation of its own" in str(error)
    assert "rank 1 waits for rank 2: (not waiting yet) send to rank 2" in str(error)
    assert len(progress) <= 2


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


kept: list = []


def test_a_rank_that_waits_behind_a_cycle_of_others_is_shown_too():
    error = error_of(Deadlock, behind_a_cycle, 3)
    assert error.cycle == (0, 1)
    assert "Behind them:\n  rank 2 waits for rank 0: recv from rank 0" in str(error)
    kept.clear()


def crossed_groups():
    rank = dist.get_rank()
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
    x = torch.ones(1)
    for group in groups if rank == 0 else groups[::-1]:
        dist.all_reduce(x, group=group)


@pytest.mark.parametrize("order", ORDERS)
def test_collectives_of_two_groups_in_two_orders_are_a_cycle(order):
    error = error_of(Deadlock, crossed_groups, 2, order=order)
    assert error.cycle == (0, 1)
    assert "all_reduce over ranks [0, 1]" in str(error)
    assert "in one order" in str(error)
    assert "batch_isend_irecv" not in str(error)  # would not help


def mixed():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        dist.all_reduce(x)
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
        dist.all_reduce(x)


@pytest.mark.parametrize("order", ORDERS)
def test_a_message_and_a_collective_that_wait_for_each_other(order):
    assert error_of(Deadlock, mixed, 2, order=order).cycle == (0, 1)


def barrier_missed_by_one():
    if dist.get_rank() != 1:
        dist.barrier()
    else:
        dist.recv(torch.ones(1), 0)


def test_a_collective_waits_for_each_member_that_is_missing():
    assert error_of(Deadlock, barrier_missed_by_one, 3).cycle == (0, 1)


def any_source_from_the_stuck():
    rank = dist.get_rank()
    x = torch.ones(1)
    if rank < 2:
        dist.recv(x)
    else:
        dist.send(x, 0)
        dist.send(x, 0)


def test_a_receive_from_any_rank_is_stuck_only_when_nobody_is_left_to_send():
    assert verdict(any_source_from_the_stuck, 3, order="host") == "PeerLeft"


def all_receive_from_any():
    dist.recv(torch.ones(1))


def test_ranks_that_all_receive_from_any_rank_wait_for_one_another():
    assert verdict(all_receive_from_any, 3, order="host") == "Deadlock"


def long_chain():
    """Each rank waits for the next; the last one runs, and feeds the chain."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.zeros(1)
    if rank < size - 1:
        dist.recv(x, rank + 1)
    if rank > 0:
        dist.send(x + 1, rank - 1)
    return x.item()


@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_of_many_ranks_that_ends_at_one_who_runs_is_no_deadlock(order):
    assert World(200, order=order).run(long_chain) == [199.0 - r for r in range(200)]


def deep_in_python(depth):
    if depth:
        return deep_in_python(depth - 1)
    return long_chain()


def test_looking_for_cycles_needs_little_of_the_programs_stack():
    assert World(200).run(deep_in_python, 700)[0] == 199.0
