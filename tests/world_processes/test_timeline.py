from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.timeline import Timeline
from ringlab.world import World
from ringlab.world.errors import HungRank
from ringlab.world.processes import ProcessRunner

pytestmark = pytest.mark.processes


def ring() -> None:
    """Two hops of a batch each way."""
    rank, size = dist.get_rank(), dist.get_world_size()
    held = torch.ones(2, 3, dtype=torch.bfloat16)
    for _ in range(2):
        got = torch.empty_like(held)
        hop = [
            dist.P2POp(dist.isend, held, (rank + 1) % size),
            dist.P2POp(dist.irecv, got, (rank - 1) % size),
        ]
        for work in dist.batch_isend_irecv(hop):
            work.wait()
        held = got


def one_by_one() -> None:
    """Blocking and non-blocking messages."""
    x = torch.zeros(5)
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.irecv(x, 2).wait()
    elif dist.get_rank() == 1:
        dist.recv(x, 0)
    else:
        dist.isend(x, 0).wait()
    if dist.get_rank() == 1:
        dist.recv(x)  # from whoever sends first
    elif dist.get_rank() == 2:
        dist.send(x, 1)


def collectives() -> None:
    """Every collective that attention uses, and the others that both worlds have."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.ones(size, 4)
    dist.all_reduce(x)
    dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True).wait()
    dist.all_gather([torch.zeros(size, 4) for _ in range(size)], x)
    all_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    all_gather(torch.zeros(size * size, 4), x)
    reduce_scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
    reduce_scatter(torch.zeros(1, 4), x)
    dist.all_to_all_single(torch.zeros(size, 4), x)
    splits = [rank if peer == 0 else 1 for peer in range(size)]
    mine = [peer if rank == 0 else 1 for peer in range(size)]
    dist.all_to_all_single(torch.zeros(sum(mine), 4), torch.ones(sum(splits), 4), mine, splits)
    dist.broadcast(x, src=1)
    dist.reduce(x, dst=2)
    dist.gather(x, [torch.zeros(size, 4) for _ in range(size)] if rank == 1 else None, dst=1)
    dist.scatter(torch.zeros(4), list(x) if rank == 0 else None, src=0)
    dist.barrier()


def subgroup() -> None:
    """Operations of a group that does not start at rank 0."""
    group = dist.new_group([1, 2])
    if dist.get_rank():
        dist.all_reduce(torch.ones(8), group=group)
        if dist.get_rank() == 1:
            dist.send(torch.ones(3), 2, group=group)
        else:
            dist.recv(torch.ones(3), group=group, group_src=0)


@pytest.mark.parametrize("program", [ring, one_by_one, collectives, subgroup])
def test_a_process_world_records_what_the_virtual_world_records(world, program):
    virtual = World(3, order="host")
    virtual.run(program)
    world.run(program)
    assert world.timeline.communication() == virtual.timeline.communication()
    assert len(world.timeline) > 0


def test_the_bytes_of_a_ring_are_counted_hop_by_hop(world):
    world.run(ring)
    assert [world.timeline.hops(rank) for rank in range(3)] == [(12, 12)] * 3
    assert world.timeline.edges() == {(0, 1): 24, (1, 2): 24, (2, 0): 24}


def test_a_run_without_communication_leaves_nothing_of_the_one_before(world):
    world.run(ring)
    world.run(int)
    assert world.timeline.communication() == Timeline(3)


def test_a_run_that_hangs_leaves_what_was_done_before(world):
    def work():
        dist.all_reduce(torch.ones(1))
        if dist.get_rank() == 0:
            dist.recv(torch.ones(1), 1)

    with pytest.raises(HungRank):
        world.run(work, timeout=0.5)
    seen = [(e.kind, e.name) for e in world.timeline.communication().of(0)]
    assert seen == [
        ("collective", "all_reduce"), ("wait", "all_reduce"), ("recv", "recv"), ("wait", "recv")
    ]  # fmt: skip
    assert world.timeline.of(0)[-1].end is None


def test_a_timeline_that_would_grow_without_end_is_cut_with_a_warning():
    world = ProcessRunner(1)

    def work():
        from ringlab.world.processes import recorder

        recorder.EVENT_LIMIT = 10
        for _ in range(20):
            dist.all_reduce(torch.ones(1))

    with pytest.warns(RuntimeWarning, match="first 100,000 events"):
        world.run(work)
    assert 0 < len(world.timeline) <= 10  # computing that is too short to count was noted too
    world.close()


def test_a_call_that_torch_refuses_is_refused_in_torchs_words(world):
    def work():
        try:
            dist.all_gather([torch.zeros(2)], torch.zeros(3))
        except Exception as error:
            return str(error)
        return None

    plain = world.run(work)
    assert all(words and "expected length 3, got 1" in words for words in plain)
