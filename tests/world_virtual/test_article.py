"""The verdict on each way to write a prefill ring, under both orders."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import BadCall, Deadlock, RankFailed
from tests.world_virtual.rings import (
    Ring,
    batched,
    batched_layers,
    batched_with_a_last_send,
    even_ranks_send_first,
    last_send_skipped,
    last_send_unwaited,
    listing,
    receives_before_sends,
    receives_posted_first,
    sends_never_waited,
    values_received_before_keys,
    values_received_before_keys_with_tags,
    wait,
)
from tests.world_virtual.verdicts import ORDERS, error_of, line_of, verdict

HOPS = [2, 4]


TABLE = [
    # program, verdict under stream (NCCL's rules), under host (gloo's)
    (listing, "Deadlock", "Deadlock"),
    (receives_posted_first, "Deadlock", "Deadlock"),
    (last_send_skipped, "Deadlock", "right"),
    (receives_before_sends, "Deadlock", "right"),
    (sends_never_waited, "Deadlock", "UnmatchedOperation"),
    (last_send_unwaited, "UnmatchedOperation", "UnmatchedOperation"),
    (batched, "right", "right"),
    (batched_layers, "right", "right"),
    (batched_with_a_last_send, "Deadlock", "Deadlock"),
    (even_ranks_send_first, "right", "right"),
    (values_received_before_keys, "wrong", "wrong"),
    (values_received_before_keys_with_tags, "Deadlock", "right"),
]


def judge(program, size, order):
    said = verdict(program, size, order=order)
    if said != "ok":
        return said
    return "right" if all(World(size, order=order).run(program)) else "wrong"


@pytest.mark.parametrize("size", HOPS)
@pytest.mark.parametrize(("program", "stream", "host"), TABLE)
def test_verdict_on_each_variant_under_both_orders(program, stream, host, size):
    assert judge(program, size, "stream") == stream
    assert judge(program, size, "host") == host


@pytest.mark.parametrize("order", ORDERS)
def test_the_listing_deadlocks_in_its_first_step_at_every_size_of_message(order):
    error = error_of(Deadlock, listing, 4, order=order)
    assert error.cycle == (0, 1, 2, 3)
    assert line_of(Ring.send, "dist.isend(self.k") in str(error)
    assert f"waits at {line_of(wait, 'work.wait')}" in str(error)


@pytest.mark.parametrize("size", HOPS)
def test_ranks_that_wait_behind_their_own_lines_are_shown_once_and_as_waiting(size):
    error = error_of(Deadlock, last_send_skipped, size)
    assert error.cycle == tuple(range(size))
    assert str(error).count("      waits at ") == size
    assert "not waiting yet" not in str(error)
    assert "Behind them" not in str(error)


def test_the_listing_on_one_rank_sends_to_itself():
    assert verdict(listing, 1, order="stream") == "Deadlock"
    error = error_of(RankFailed, listing, 1, order="host")
    assert isinstance(error.__cause__, BadCall)
    assert "cannot send to itself" in str(error)


def listing_in_subgroups(memberships):
    """Peers are computed in the group, and passed where ranks of the world are meant."""
    groups = [dist.new_group(ranks) for ranks in memberships]
    group = next(g for g in groups if g is not dist.GroupMember.NON_GROUP_MEMBER)
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.ones(1), (rank + 1) % size, group=group),
            dist.P2POp(dist.irecv, torch.ones(1), (rank - 1) % size, group=group),
        ]
    )
    wait(works)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("memberships", [[[0, 1], [2, 3]], [[0, 2], [1, 3]]])
def test_group_ranks_passed_as_world_ranks_are_refused(memberships, order):
    error = error_of(RankFailed, listing_in_subgroups, 4, memberships, order=order)
    assert isinstance(error.__cause__, ValueError)
    assert "not part of group" in str(error)


def test_unmatched_sends_of_one_layer_reach_the_next_under_host():
    """What the error prevents: the second layer computes with what the first left behind."""
    seen = []

    def program():
        seen.append(sends_never_waited(layers=2))

    assert verdict(program, 2, order="host") == "UnmatchedOperation"
    assert [layers[0] for layers in seen] == [True, True]
    assert [layers[1] for layers in seen] == [False, False]
