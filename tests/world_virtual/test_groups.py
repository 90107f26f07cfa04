"""Sub-groups and meshes: numbering, order of creation, local synchronisation."""

from __future__ import annotations

import inspect

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import (
    Deadlock,
    MessageMismatch,
    PeerLeft,
    RankFailed,
    UnmatchedOperation,
)
from tests.world_virtual.verdicts import ORDERS, error_of, line_of

CAN_PERMUTE = "sort_ranks" in inspect.signature(dist.new_group).parameters
PERMUTED = {"sort_ranks": False} if CAN_PERMUTE else {}
sorts = pytest.mark.parametrize("how", [{}, PERMUTED])


def ring(group):
    """One hop in a group, its peers given as group ranks; what arrived, and from whom."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    x, y = torch.tensor([float(dist.get_rank())]), torch.zeros(1)
    ops = [
        dist.P2POp(dist.isend, x, group=group, group_peer=(rank + 1) % size),
        dist.P2POp(dist.irecv, y, group=group, group_peer=(rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return y.item()


@sorts
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("size", "memberships"),
    [
        (4, ([0, 2], [1, 3])),
        (4, ([2, 3], [0, 1])),
        (6, ([5, 1, 3], [4, 0, 2])),
        (6, ([3, 2, 1, 0], [4, 5])),
        (3, ([2],)),
    ],
)
def test_report_g1_rings_in_groups_that_do_not_start_at_0_or_are_permuted(
    size, memberships, order, how
):
    if not how:
        memberships = tuple(sorted(m) for m in memberships)
    results = World(size, order=order).run(rings, *memberships, how=how)
    for ranks in memberships:
        for place, rank in enumerate(ranks):
            if len(ranks) > 1:
                assert ranks[place - 1] in results[rank]


def rings(*memberships, how):
    groups = [dist.new_group(list(ranks), **how) for ranks in memberships]
    mine = [g for g in groups if g is not dist.GroupMember.NON_GROUP_MEMBER]
    return [ring(g) for g in mine if dist.get_world_size(g) > 1]


def numbering():
    group = dist.new_group([3, 1, 2])
    if dist.get_rank() == 0:
        return group == dist.GroupMember.NON_GROUP_MEMBER
    ranks = dist.get_process_group_ranks(group)
    return dist.get_rank(group), dist.get_world_size(group), ranks, dist.get_backend(group)


def test_ranks_of_a_group_are_numbered_in_its_order():
    first, *members = World(4).run(numbering)
    assert first is True
    for rank, got in enumerate(members):
        assert got == (rank, 3, [1, 2, 3], "ringlab_virtual")


def collectives_in_a_permuted_group():
    group = dist.new_group([3, 0, 2], **PERMUTED)
    if dist.get_rank() == 1:
        return None
    x = torch.tensor([float(dist.get_rank())])
    out = [torch.zeros(1) for _ in range(3)]
    dist.all_gather(out, x, group=group)
    dist.broadcast(x, 3, group=group)
    return [o.item() for o in out], x.item()


def test_collectives_follow_the_order_of_a_permuted_group():
    results = World(4).run(collectives_in_a_permuted_group)
    order = [3.0, 0.0, 2.0] if CAN_PERMUTE else [0.0, 2.0, 3.0]
    assert [results[r] for r in (0, 2, 3)] == [(order, 3.0)] * 3


def global_number_as_group_number():
    """The classic mistake: the peer is computed in the group and passed as a world rank."""
    group = dist.new_group([2, 3])
    if dist.get_rank() >= 2:
        peer = 1 - dist.get_rank(group)
        dist.send(torch.ones(1), peer, group=group)


def test_report_g4_a_group_rank_passed_as_world_rank_is_refused():
    error = error_of(RankFailed, global_number_as_group_number, 4)
    assert isinstance(error.__cause__, ValueError)
    assert "not part of group" in str(error)


def other_order():
    ranks = [[0, 1], [1, 2]]
    for members in ranks if dist.get_rank() < 2 else ranks[::-1]:
        dist.new_group(members)


def test_groups_created_in_different_orders_are_refused_with_both_lines():
    error = error_of(MessageMismatch, other_order, 3)
    line = line_of(other_order, "dist.new_group")
    assert "call number 1 of new_group differs between ranks" in str(error)
    assert f"new_group([0, 1]) at {line}" in str(error)
    assert f"new_group([1, 2]) at {line}" in str(error)


def non_member_in_other_order():
    ranks = [[0, 1], [0]]
    for members in ranks if dist.get_rank() < 2 else ranks[::-1]:
        dist.new_group(members)


def test_also_a_rank_that_is_in_none_of_the_groups_must_create_them_in_order():
    assert "differs between ranks" in str(error_of(MessageMismatch, non_member_in_other_order, 3))


def only_members_create():
    if dist.get_rank() < 2:
        dist.new_group([0, 1])


def test_a_rank_that_did_not_create_a_group_is_named_at_the_end():
    error = error_of(UnmatchedOperation, only_members_create, 3)
    assert "call number 1 of new_group was not made by rank 2" in str(error)
    assert line_of(only_members_create, "dist.new_group") in str(error)


def a_member_never_comes():
    if dist.get_rank() != 1:
        dist.new_group([0, 1])


def test_creation_blocks_until_the_members_have_come():
    assert "new_group over ranks [0, 1]" in str(error_of(PeerLeft, a_member_never_comes, 2))


def crossed_creation():
    rank = dist.get_rank()
    if rank == 0:
        dist.new_group([0, 1], use_local_synchronization=True)
        dist.send(torch.ones(1), 1)
    else:
        dist.recv(torch.ones(1), 0)
        dist.new_group([0, 1], use_local_synchronization=True)


def test_creation_can_be_part_of_a_cycle():
    assert error_of(Deadlock, crossed_creation, 2).cycle == (0, 1)


def local_groups():
    rank = dist.get_rank()
    if rank == 3:
        return None
    group = dist.new_group([0, 2] if rank != 1 else [1], use_local_synchronization=True)
    x = torch.tensor([rank + 1.0])
    dist.all_reduce(x, group=group)
    return x.item()


def test_local_synchronisation_needs_the_members_only():
    assert World(4).run(local_groups) == [4.0, 2.0, 4.0, None]


def names_differ():
    """Torch names a local group by how many groups a rank has: they differ here."""
    if dist.get_rank() == 0:
        dist.new_group([0], use_local_synchronization=True)
    dist.new_group([0, 1], use_local_synchronization=True)


def test_local_groups_whose_names_differ_never_meet_and_the_report_says_why():
    error = error_of(Deadlock, names_differ, 2)
    assert error.cycle == (0, 1)
    assert "by how many groups a rank has" in str(error)


def many_groups_of_the_same_ranks():
    groups = [dist.new_group([0, 1]) for _ in range(3)]
    values = []
    for i, group in enumerate(groups):
        x = torch.tensor([float(i)])
        dist.all_reduce(x, group=group)
        values.append(x.item())
    return values, len({g.group_name for g in groups})


def test_groups_of_the_same_ranks_are_different_groups():
    assert World(2).run(many_groups_of_the_same_ranks) == [([0.0, 2.0, 4.0], 3)] * 2


def two_rings_at_once():
    """Two rings at once over the same ranks, each on a group of its own."""
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group(list(range(size))) for _ in range(2)]
    out = []
    for step, group in enumerate(groups):
        x, y = torch.tensor([10.0 * step + rank]), torch.zeros(1)
        ops = [dist.P2POp(dist.isend, x, (rank + 1) % size, group=group),
               dist.P2POp(dist.irecv, y, (rank - 1) % size, group=group)]  # fmt: skip
        out.append((dist.batch_isend_irecv(ops), y))
    for works, _ in reversed(out):
        for work in works:
            work.wait()
    return [y.item() for _, y in out]


@pytest.mark.parametrize("order", ORDERS)
def test_report_g7_two_rings_at_once_do_not_mix(order):
    results = World(3, order=order).run(two_rings_at_once)
    assert results == [[float((r - 1) % 3), 10.0 + (r - 1) % 3] for r in range(3)]


def brute_force_partition(inner, outer):
    """Groups of a double ring: inner rings of neighbours, outer rings across them."""
    rings_in = [list(range(i * inner, (i + 1) * inner)) for i in range(outer)]
    rings_out = [list(range(i, inner * outer, inner)) for i in range(inner)]
    found = []
    for ranks in (*rings_in, *rings_out):
        group = dist.new_group(ranks)
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            x = torch.zeros(inner * outer)
            x[dist.get_rank()] = 1
            dist.all_reduce(x, group=group)
            found.append(x.nonzero().flatten().tolist())
    return found


@pytest.mark.parametrize(("inner", "outer"), [(2, 2), (2, 3), (3, 2), (1, 4), (4, 1)])
def test_report_g2_inner_and_outer_rings_partition_the_world(inner, outer):
    results = World(inner * outer).run(brute_force_partition, inner, outer)
    for rank, (inside, across) in enumerate(results):
        assert inside == [r for r in range(inner * outer) if r // inner == rank // inner]
        assert across == [r for r in range(inner * outer) if r % inner == rank % inner]


def destroys():
    group = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1), group=group)
    dist.destroy_process_group(group)
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x.item(), dist.is_initialized()


def test_a_program_may_destroy_its_groups():
    assert World(2).run(destroys) == [(2.0, False)] * 2
    assert World(2).run(dist.get_rank) == [0, 1]


def initialises_again():
    dist.init_process_group("gloo")


def test_a_second_initialisation_is_refused_by_torch():
    error = error_of(RankFailed, initialises_again, 1)
    assert "twice" in str(error)
