"""Handles: asking whether they are done, results, futures and their callbacks."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from tests.world_virtual.verdicts import ORDERS, verdict


def poll():
    rank = dist.get_rank()
    x = torch.tensor([rank + 1.0])
    memory = x.numpy()
    work = dist.all_reduce(x, async_op=True)
    asked = 1
    while not work.is_completed():
        asked += 1
    before = float(memory[0])
    work.wait()
    return asked, before, x.item(), work.is_success()


@pytest.mark.parametrize("order", ORDERS)
def test_asking_gives_the_others_a_turn_and_the_wait_fills_the_buffer(order):
    for rank, (asked, before, after, success) in enumerate(World(3, order=order).run(poll)):
        assert asked <= 2
        assert before == rank + 1
        assert after == 6.0
        assert success


def source_rank():
    if dist.get_rank() == 2:
        x = torch.zeros(1)
        work = dist.irecv(x, 1)
        work.wait()
        return work._source_rank(), [t is x for t in work.result()]
    if dist.get_rank() == 1:
        dist.send(torch.ones(1), 2)
    return None


def test_a_receive_knows_its_sender_and_its_buffer():
    assert World(3).run(source_rank)[2] == (1, [True])


def futures_of_an_exchange():
    """Both futures are taken before either operation can be done."""
    rank = dist.get_rank()
    x, y = torch.tensor([rank + 1.0]), torch.zeros(1)
    send = dist.isend(x, 1 - rank).get_future()
    recv = dist.irecv(y, 1 - rank).get_future()
    doubled = recv.then(lambda f: f.value()[0] * 2)
    return send.wait()[0] is x, doubled.wait().item(), y.item(), recv.done()


def test_taking_a_future_does_not_wait():
    assert World(2, order="host").run(futures_of_an_exchange) == [
        (True, 4.0, 2.0, True),
        (True, 2.0, 1.0, True),
    ]


def futures_across_groups():
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
    x = [torch.ones(1), torch.ones(1)]
    places = (0, 1) if dist.get_rank() else (1, 0)
    futures = [dist.all_reduce(x[i], group=groups[i], async_op=True).get_future() for i in places]
    for future in futures:
        future.wait()
    return [t.item() for t in x]


@pytest.mark.parametrize("order", ORDERS)
def test_futures_of_two_groups_may_be_taken_in_any_order(order):
    assert World(2, order=order).run(futures_across_groups) == [[2.0, 2.0]] * 2


def callbacks():
    log = []
    x = torch.ones(1)
    future = dist.all_reduce(x, async_op=True).get_future()
    future.add_done_callback(lambda f: log.append(f.value()[0].item()))
    chained = future.then(lambda f: f.value()[0] + 1).then(lambda f: f.value() * 10)
    failing = future.then(lambda f: 1 / 0)
    log.append("before")
    future.wait()
    future.add_done_callback(lambda f: log.append("late"))
    try:
        failing.wait()
    except ZeroDivisionError:
        log.append("failed")
    return log, chained.wait().item()


def test_callbacks_run_in_the_wait_and_pass_their_values_and_errors_on():
    assert World(2).run(callbacks) == [(["before", 2.0, "late", "failed"], 30.0)] * 2


def callback_only():
    dist.all_reduce(torch.ones(1), async_op=True).get_future().then(lambda f: None)


def test_a_future_that_nobody_waits_for_is_a_handle_that_nobody_waits_for():
    assert verdict(callback_only, 2) == "UnwaitedHandle"


def deadlock_in_a_future():
    dist.isend(torch.ones(1), 1 - dist.get_rank()).get_future().wait()
    dist.recv(torch.ones(1), 1 - dist.get_rank())


def test_waiting_for_a_future_can_close_a_cycle():
    assert verdict(deadlock_in_a_future, 2) == "Deadlock"


def value_too_early():
    future = dist.irecv(torch.ones(1), 1).get_future()
    try:
        future.value()
    except RuntimeError:
        return "too early"
    finally:
        future.wait()
    return "there"


def value_later():
    if dist.get_rank() == 0:
        return value_too_early()
    dist.barrier(group=dist.new_group([1], use_local_synchronization=True))
    work = dist.isend(torch.ones(1), 0)
    work.wait()
    return None


def test_the_value_of_a_future_gives_the_others_a_turn_first():
    assert World(2).run(value_later)[0] == "there"
