"""What a program leaves behind when it ends: nothing may be unmatched or unwaited."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import RankFailed, UnmatchedOperation, UnwaitedHandle
from tests.world_virtual.verdicts import ORDERS, error_of, line_of


def forgotten_send(works):
    if dist.get_rank() == 0:
        works.append(dist.isend(torch.ones(3), 1))
        works.append(dist.isend(torch.ones(4), 1))
    else:
        dist.recv(torch.ones(3), 0)


@pytest.mark.parametrize("order", ORDERS)
def test_an_operation_that_nobody_matched_is_named_with_its_rank_and_line(order):
    error = error_of(UnmatchedOperation, forgotten_send, 2, [], order=order)
    line = line_of(forgotten_send, "torch.ones(4)")
    assert f"  rank 0: send to rank 1 at {line}: `works.append(" in str(error)
    assert line_of(forgotten_send, "torch.ones(3), 1") not in str(error)


def forgotten_receive():
    if dist.get_rank() == 1:
        dist.irecv(torch.ones(3), 0)


def forgotten_collective():
    if dist.get_rank() == 1:
        dist.all_reduce(torch.ones(3), async_op=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("program", "what"),
    [(forgotten_receive, "recv from rank 0"), (forgotten_collective, "all_reduce over ranks")],
)
def test_receives_and_collectives_can_be_unmatched_too(program, what, order):
    assert f"rank 1: {what}" in str(error_of(UnmatchedOperation, program, 2, order=order))


def matched_but_not_waited_for():
    rank = dist.get_rank()
    if rank == 0:
        dist.isend(torch.ones(1), 1)
    else:
        dist.recv(torch.ones(1), 0)


@pytest.mark.parametrize("order", ORDERS)
def test_a_handle_that_was_dropped_is_an_error_though_the_message_arrived(order):
    error = error_of(UnwaitedHandle, matched_but_not_waited_for, 2, order=order)
    assert line_of(matched_but_not_waited_for, "dist.isend") in str(error)
    assert "rank 1" not in str(error).replace("to rank 1", "")


def one_of_a_batch_not_waited_for():
    other = 1 - dist.get_rank()
    ops = [
        dist.P2POp(dist.isend, torch.ones(1), other),
        dist.P2POp(dist.irecv, torch.ones(1), other),
    ]
    dist.batch_isend_irecv(ops)[0].wait()


@pytest.mark.parametrize("order", ORDERS)
def test_each_handle_of_a_batch_has_to_be_waited_for(order):
    error = error_of(UnwaitedHandle, one_of_a_batch_not_waited_for, 2, order=order)
    assert str(error).count("recv from rank") == 2
    assert "send to" not in str(error)


def collective_not_waited_for():
    dist.all_reduce(torch.ones(1), async_op=True)


def polled_but_not_waited_for():
    work = dist.all_reduce(torch.ones(1), async_op=True)
    while not work.is_completed():
        pass


@pytest.mark.parametrize(
    "program",
    [collective_not_waited_for, polled_but_not_waited_for],
)
def test_collectives_have_to_be_waited_for(program):
    error = error_of(UnwaitedHandle, program, 2)
    assert str(error).count("all_reduce over ranks [0, 1]") == 2


def forgets_many():
    if dist.get_rank() == 0:
        for _ in range(40):
            dist.isend(torch.ones(1), 1)


def test_a_long_list_is_cut_and_counted():
    text = str(error_of(UnmatchedOperation, forgets_many, 2))
    assert text.count("send to rank 1") == 16
    assert "... and 24 more" in text


def unwaited_twice():
    work = dist.all_reduce(torch.ones(1), async_op=True)
    work.wait()
    work.wait()
    return True


def test_waiting_twice_does_no_harm():
    assert World(2).run(unwaited_twice) == [True, True]


def fails_with_something_pending():
    dist.isend(torch.ones(1), 1 - dist.get_rank())
    raise ValueError("mine")


def test_an_exception_comes_before_complaints_about_what_it_left_behind():
    error = error_of(RankFailed, fails_with_something_pending, 2)
    assert isinstance(error.__cause__, ValueError)
