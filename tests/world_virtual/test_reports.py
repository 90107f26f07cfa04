"""Faults that users of other libraries reported, as programs that the world must see through."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import BadCall, Deadlock, MessageMismatch, RankFailed
from tests.world_virtual.verdicts import ORDERS, error_of, verdict


def neighbours():
    rank, size = dist.get_rank(), dist.get_world_size()
    return (rank + 1) % size, (rank - 1) % size


def unbatched_ring():
    after, before = neighbours()
    x, y = torch.ones(4), torch.empty(4)
    works = [dist.isend(x, after), dist.irecv(y, before)]
    for work in works:
        work.wait()


def batched_ring(hops=1, recv_first=False):
    after, before = neighbours()
    x = torch.full((4,), float(dist.get_rank()))
    for _ in range(hops):
        y = torch.empty(4)
        ops = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]
        for work in dist.batch_isend_irecv(ops[::-1] if recv_first else ops):
            work.wait()
        x = y
    return x[0].item()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_report_f1_a_plain_isend_irecv_ring_hangs_on_nccl_and_a_batched_one_does_not(size):
    assert verdict(unbatched_ring, size, order="stream") == "Deadlock"
    assert verdict(unbatched_ring, size, order="host") == "ok"
    world = World(size)
    world.run(batched_ring)
    for rank in range(size):
        send, recv = (e for e in world.timeline.of(rank) if e.launch >= 0 and e.kind != "wait")
        assert send.launch == recv.launch


def send_then_receive(n):
    other = 1 - dist.get_rank()
    dist.send(torch.ones(n), other)
    dist.recv(torch.ones(n), other)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [0, 1, 1 << 20])
def test_report_f2_send_then_receive_on_both_ranks_deadlocks_at_every_size(n, order):
    assert error_of(Deadlock, send_then_receive, 2, n, order=order).cycle == (0, 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_report_f3_inside_a_batch_receives_may_come_before_sends(size, order):
    results = World(size, order=order).run(batched_ring, recv_first=True)
    assert results == [float((r - 1) % size) for r in range(size)]


def reduce_beside_a_message():
    rank = dist.get_rank()
    x, y = torch.ones(1), torch.ones(1)
    works = [
        lambda: dist.all_reduce(x, async_op=True),
        lambda: dist.isend(y, 1) if rank == 0 else dist.irecv(y, 0),
    ]
    for work in [start() for start in (works if rank else works[::-1])]:
        work.wait()


def test_report_f4_a_reduction_and_a_message_in_two_orders_on_one_group_hang_on_nccl():
    assert verdict(reduce_beside_a_message, 2, order="stream") == "Deadlock"
    assert verdict(reduce_beside_a_message, 2, order="host") == "ok"


def receive_batched_with_a_send_that_needs_it():
    """Rank 1 batches a receive with a send of what it is about to receive elsewhere first."""
    rank = dist.get_rank()
    x, y, z = torch.ones(1), torch.empty(1), torch.empty(1)
    if rank == 0:
        dist.recv(z, 1)
        dist.send(x, 1)
    else:
        works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, y, 0)])
        for work in works:
            work.wait()
        dist.send(y, 0)


def test_report_f8_a_batch_that_waits_for_a_send_which_waits_for_it():
    assert error_of(Deadlock, receive_batched_with_a_send_that_needs_it, 2).cycle == (0, 1)


def other_number_of_collectives():
    x = torch.ones(1)
    for _ in range(2 + (dist.get_rank() == 2)):
        dist.all_reduce(x)


def test_report_f12_a_rank_that_makes_one_collective_more_is_named():
    assert verdict(other_number_of_collectives, 3) == "PeerLeft"


def handles_of_batches_dropped():
    after, before = neighbours()
    dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.ones(1), after),
            dist.P2POp(dist.irecv, torch.ones(1), before),
        ]
    )


def test_report_f15_handles_of_a_batch_that_nobody_waits_for_are_an_error():
    assert verdict(handles_of_batches_dropped, 3) == "UnwaitedHandle"


@pytest.mark.parametrize("hops", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_report_f16_many_hops_of_16_ranks(hops):
    assert World(16).run(batched_ring, hops) == [float((r - hops) % 16) for r in range(16)]


def credits(slots):
    """A ring whose ranks have few slots: one that is full takes nothing before it has sent."""
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = neighbours()
    held = [torch.tensor([float(rank)])]
    seen = []
    for _ in range(size - 1):
        if len(held) < slots:
            incoming = torch.empty(1)
            work = dist.irecv(incoming, before)
            dist.send(held.pop(0), after)
            work.wait()
        else:
            dist.send(held.pop(0), after)
            incoming = torch.empty(1)
            dist.recv(incoming, before)
        held.append(incoming)
        seen.append(incoming.item())
    return seen


@pytest.mark.parametrize("size", [2, 3, 5])
def test_report_f14_a_ring_with_one_slot_a_rank_deadlocks_and_with_two_does_not(size):
    assert verdict(credits, size, 1, order="host") == "Deadlock"
    results = World(size, order="host").run(credits, 2)
    assert results == [[float((r - 1 - i) % size) for i in range(size - 1)] for r in range(size)]


def send_transposed():
    dist.send(torch.arange(6.0).view(2, 3).t(), 1 - dist.get_rank())


def broadcast_column():
    dist.broadcast(torch.arange(6.0).view(2, 3)[:, 1], 0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("program", [send_transposed, broadcast_column])
def test_report_h1_h2_h3_strided_buffers_are_refused_in_every_order(program, order):
    assert isinstance(error_of(RankFailed, program, 2, order=order).__cause__, BadCall)


def keys_and_values_of_other_shapes():
    """K and V of a GQA layer are posted in two orders; sizes and shapes differ."""
    rank = dist.get_rank()
    k, v = torch.ones(2, 8), torch.ones(8, 2)
    if rank == 0:
        works = [dist.isend(k, 1), dist.isend(v, 1)]
    else:
        works = [dist.irecv(v, 0), dist.irecv(k, 0)]
    for work in works:
        work.wait()


def bits_of_another_dtype():
    if dist.get_rank() == 0:
        dist.send(torch.ones(4, dtype=torch.bfloat16), 1)
    else:
        dist.recv(torch.empty(2, dtype=torch.float32), 0)


def message_shorter_than_its_buffer():
    if dist.get_rank() == 0:
        dist.send(torch.ones(3), 1)
    else:
        dist.recv(torch.empty(4), 0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "program",
    [keys_and_values_of_other_shapes, bits_of_another_dtype, message_shorter_than_its_buffer],
)
def test_report_h5_what_gloo_fills_in_part_swaps_or_reinterprets_is_refused(program, order):
    assert error_of(MessageMismatch, program, 2, order=order)
