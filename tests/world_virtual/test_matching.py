"""Which operations meet, under NCCL's rules (stream) and under gloo's (host)."""

from __future__ import annotations

import math

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import BadCall, Deadlock, MessageMismatch, RankFailed
from tests.world_virtual.verdicts import ORDERS, error_of, verdict


def exchange(kinds, value=0.0):
    """Post operations 's' (isend to the other) and 'r' (irecv) one by one; wait for all."""
    other = 1 - dist.get_rank()
    works, buffers = [], []
    for i, kind in enumerate(kinds[dist.get_rank()]):
        buffer = torch.full((2,), 10.0 * dist.get_rank() + i)
        buffers.append(buffer)
        call = dist.isend if kind == "s" else dist.irecv
        works.append(call(buffer, other))
    for work in works:
        work.wait()
    return [b[0].item() for b in buffers]


def batch(kinds):
    """As `exchange`, in one batch."""
    other = 1 - dist.get_rank()
    buffers = [
        torch.full((2,), 10.0 * dist.get_rank() + i) for i in range(len(kinds[dist.get_rank()]))
    ]
    calls = [dist.isend if kind == "s" else dist.irecv for kind in kinds[dist.get_rank()]]
    ops = [dist.P2POp(call, b, other) for call, b in zip(calls, buffers, strict=True)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return [b[0].item() for b in buffers]


@pytest.mark.parametrize("order", ORDERS)
def test_a_send_and_the_receive_of_its_peer_meet(order):
    assert World(2, order=order).run(exchange, ("s", "r")) == [[0.0], [0.0]]


def test_stream_serialises_the_unbatched_operations_of_a_group():
    assert verdict(exchange, 2, ("sr", "sr"), order="stream") == "Deadlock"
    assert verdict(exchange, 2, ("sr", "rs"), order="stream") == "ok"


def test_host_lets_unbatched_operations_progress_on_their_own():
    assert World(2, order="host").run(exchange, ("sr", "sr")) == [[0.0, 10.0], [10.0, 0.0]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kinds", [("sr", "sr"), ("rs", "rs"), ("sr", "rs"), ("rs", "sr")])
def test_the_order_inside_a_batch_does_not_matter(order, kinds):
    assert verdict(batch, 2, kinds, order=order) == "ok"


@pytest.mark.parametrize("order", ORDERS)
def test_messages_of_one_direction_meet_first_in_first_out(order):
    assert World(2, order=order).run(batch, ("ssr", "rsr")) == [[0.0, 1.0, 11.0], [0.0, 11.0, 1.0]]


def batch_then_wait_for_the_send_only():
    """Rank 1 sends to 2 only after its send to 0 is done; 0 receives from 2 before that."""
    rank = dist.get_rank()
    world, pair = dist.group.WORLD, dist.new_group([1, 2])
    x, y = torch.ones(1), torch.zeros(1)
    if rank == 0:
        works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, y, 1, group=world)])
        works[0].wait()
        dist.send(x, 1)
    elif rank == 1:
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, x, 0, group=world), dist.P2POp(dist.irecv, y, 2, group=world)]
        )
        works[0].wait()
        dist.send(x, 2, group=pair)
        works[1].wait()
        dist.recv(y, 0)
    else:
        dist.recv(y, 1, group=pair)
        dist.send(x, 1)


def test_under_stream_a_batch_is_done_as_one_and_under_host_each_part_on_its_own():
    assert verdict(batch_then_wait_for_the_send_only, 3, order="stream") == "Deadlock"
    assert verdict(batch_then_wait_for_the_send_only, 3, order="host") == "ok"


def crossed_tags():
    rank = dist.get_rank()
    a, b = torch.zeros(1), torch.zeros(1)
    if rank == 0:
        works = [dist.isend(a + 1, 1, tag=1), dist.isend(b + 2, 1, tag=2)]
    else:
        works = [dist.irecv(b, 0, tag=2), dist.irecv(a, 0, tag=1)]
    for work in works:
        work.wait()
    return a.item(), b.item()


def test_tags_are_matched_under_host_and_ignored_under_stream():
    assert World(2, order="host").run(crossed_tags)[1] == (1.0, 2.0)
    assert World(2, order="stream").run(crossed_tags)[1] == (2.0, 1.0)


def wrong_tag():
    x = torch.ones(1)
    if dist.get_rank() == 0:
        dist.send(x, 1, tag=1)
    else:
        dist.recv(x, 0, tag=2)


def test_under_host_another_tag_is_another_message():
    assert verdict(wrong_tag, 2, order="host") == "Deadlock"


def two_groups_at_once():
    """Two operations in opposite orders, each on a group of its own."""
    rank = dist.get_rank()
    one, two = dist.new_group([0, 1]), dist.new_group([0, 1])
    x, y = torch.ones(1), torch.zeros(1)
    calls = [lambda: dist.isend(x, 1 - rank, group=one), lambda: dist.irecv(y, 1 - rank, group=two)]
    if rank == 1:
        calls = [
            lambda: dist.isend(x, 1 - rank, group=two),
            lambda: dist.irecv(y, 1 - rank, group=one),
        ]
    for work in [call() for call in calls]:
        work.wait()
    return y.item()


@pytest.mark.parametrize("order", ORDERS)
def test_groups_do_not_hold_up_one_another(order):
    assert World(2, order=order).run(two_groups_at_once) == [1.0, 1.0]


def message_then_collective(first):
    x, y = torch.ones(1), torch.ones(1)
    rank = dist.get_rank()
    works = []
    for kind in first[rank]:
        if kind == "c":
            works.append(dist.all_reduce(x, async_op=True))
        else:
            works.append((dist.isend if rank == 0 else dist.irecv)(y, 1 - rank))
    for work in works:
        work.wait()
    return x.item()


def test_under_stream_a_collective_stands_in_line_with_messages():
    assert verdict(message_then_collective, 2, ("mc", "cm"), order="stream") == "Deadlock"
    assert verdict(message_then_collective, 2, ("mc", "mc"), order="stream") == "ok"
    assert verdict(message_then_collective, 2, ("mc", "cm"), order="host") == "ok"


def from_any():
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank:
        dist.send(torch.tensor([float(rank)]), 0)
        return None
    found = {}
    for _ in range(size - 1):
        buffer = torch.zeros(1)
        source = dist.recv(buffer)
        found[source] = buffer.item()
    return found


def test_host_receives_from_any_rank_and_the_timeline_says_from_whom():
    world = World(4, order="host")
    assert world.run(from_any)[0] == {1: 1.0, 2: 2.0, 3: 3.0}
    assert {e.peer for e in world.timeline.of(0, "recv")} == {1, 2, 3}


def test_stream_refuses_a_receive_from_any_rank_as_nccl_does():
    error = error_of(RankFailed, from_any, 3, order="stream")
    assert isinstance(error.__cause__, BadCall)
    assert "order='host'" in str(error)


def any_then_named():
    """Two receives are posted, the open one first; two messages come."""
    if dist.get_rank() == 1:
        for value in (1.0, 2.0):
            dist.send(torch.tensor([value]), 0)
        return None
    first, second = torch.zeros(1), torch.zeros(1)
    works = [dist.irecv(first), dist.irecv(second, 1)]
    for work in works:
        work.wait()
    return first.item(), second.item()


def test_an_open_receive_that_was_posted_first_is_served_first():
    assert World(2, order="host").run(any_then_named)[0] == (1.0, 2.0)


def send_what_changes_later():
    """The sender's buffer changes after its wait, and before the receiver's."""
    x = torch.zeros(1)
    memory = x.numpy()
    work = dist.isend(x, 1) if dist.get_rank() == 0 else dist.irecv(x, 0)
    if dist.get_rank() == 0:
        work.wait()
        x += 1
    dist.barrier(group=dist.new_group([0, 1]))
    seen = float(memory[0])
    work.wait()
    return seen, x.item()


def test_data_are_read_at_the_match_and_written_in_the_receivers_wait():
    seen, received = World(2, order="host").run(send_what_changes_later)[1]
    assert math.isnan(seen)  # what is in a receive buffer until then means nothing
    assert received == 0


def self_in_a_batch():
    rank = dist.get_rank()
    x, y = torch.tensor([rank + 1.0]), torch.zeros(1)
    ops = [dist.P2POp(dist.isend, x, rank), dist.P2POp(dist.irecv, y, rank)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return y.item()


def self_unbatched():
    rank = dist.get_rank()
    works = [dist.isend(torch.ones(1), rank), dist.irecv(torch.ones(1), rank)]
    for work in works:
        work.wait()


def test_a_message_to_oneself_works_in_a_batch_and_stands_in_its_own_way_without():
    assert World(2).run(self_in_a_batch) == [1.0, 2.0]
    error = error_of(Deadlock, self_unbatched, 1)
    assert error.cycle == (0,)
    assert "rank 0 waits for itself" in str(error)


@pytest.mark.parametrize("program", [self_in_a_batch, self_unbatched])
def test_gloo_has_no_message_to_oneself(program):
    error = error_of(RankFailed, program, 1, order="host")
    assert isinstance(error.__cause__, BadCall)


def a_batch_that_fails_halfway():
    other = 1 - dist.get_rank()
    good, strided = torch.ones(2), torch.ones(2, 2).t()[0]
    refused = 0
    try:
        dist.batch_isend_irecv([dist.P2POp(dist.isend, good, other),
                                dist.P2POp(dist.irecv, strided, other)])  # fmt: skip
    except BadCall:
        refused = 1
    buffer = torch.zeros(1)
    ops = [dist.P2POp(dist.isend, buffer + 5, other), dist.P2POp(dist.irecv, buffer, other)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return refused, buffer.item()


def test_a_batch_that_was_refused_halfway_does_not_mix_with_the_next():
    error = error_of(Exception, a_batch_that_fails_halfway, 2, order="stream")
    assert "never met" in str(error)  # the first half of the refused batch
    assert "[2]" not in str(error)  # and not a message of 2 elements met by one of 1
    assert not isinstance(error, MessageMismatch)
