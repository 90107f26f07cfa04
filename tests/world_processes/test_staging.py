from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

pytestmark = pytest.mark.processes


def staged_group() -> dist.ProcessGroup:
    """In a rank: a group that treats CPU tensors as if they were on a GPU."""
    from ringlab.world.processes import last_op, staging

    staging.STAGED_DEVICES = ("cpu",)
    staging.register(last_op.Journal())
    return dist.new_group(backend=staging.BACKEND)


def test_a_ring_of_messages_arrives_and_only_in_wait(world):
    def work():
        group = staged_group()
        rank, size = dist.get_rank(), dist.get_world_size()
        sent, got = torch.full((4,), float(rank)), torch.full((4,), -1.0)
        hop = [
            dist.P2POp(dist.isend, sent, (rank + 1) % size, group),
            dist.P2POp(dist.irecv, got, (rank - 1) % size, group),
        ]
        works = dist.batch_isend_irecv(hop)
        sent.fill_(99.0)  # what travels is the copy
        early = got.clone()
        for one in works:
            one.wait()
        return early[0].item(), got.tolist()

    ends = world.run(work)
    assert ends == [(-1.0, [float((rank - 1) % 3)] * 4) for rank in range(3)]
    world.close()


def test_a_group_ends_with_its_run(world):
    world.run(lambda: dist.barrier(staged_group()))
    assert world.run(lambda: len(dist.distributed_c10d._world.pg_map)) == [1, 1, 1]
    world.close()


def test_collectives_write_their_results_back(world):
    def work():
        group = staged_group()
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        own = torch.arange(3.0) + 10 * rank
        out = {}
        out["all_reduce"] = own.clone()
        dist.all_reduce(out["all_reduce"], group=group)
        out["max"] = own.clone()
        dist.all_reduce(out["max"], dist.ReduceOp.MAX, group=group)
        out["broadcast"] = own.clone()
        dist.broadcast(out["broadcast"], src=1, group=group)
        parts = [torch.zeros(3) for _ in range(size)]
        dist.all_gather(parts, own, group=group)
        out["all_gather"] = torch.cat(parts)
        gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
        out["all_gather_single"] = torch.zeros(3 * size)
        gather(out["all_gather_single"], own, group=group)
        scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
        out["reduce_scatter_single"] = torch.zeros(1)
        scatter(out["reduce_scatter_single"], own, group=group)
        out["all_to_all_single"] = torch.zeros(3)
        dist.all_to_all_single(out["all_to_all_single"], own, group=group)
        dist.barrier(group)
        return {name: value.tolist() for name, value in out.items()}

    ends = world.run(work)
    world.close()
    own = [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0], [20.0, 21.0, 22.0]]
    total = [sum(column) for column in zip(*own, strict=True)]
    for rank, end in enumerate(ends):
        assert end == {
            "all_reduce": total,
            "max": own[2],
            "broadcast": own[1],
            "all_gather": [x for row in own for x in row],
            "all_gather_single": [x for row in own for x in row],
            "reduce_scatter_single": [total[rank]],
            "all_to_all_single": [row[rank] for row in own],
        }


def test_an_asynchronous_collective_is_over_after_its_wait(world):
    def work():
        group = staged_group()
        y = torch.full((2,), dist.get_rank() + 1.0)
        handle = dist.all_reduce(y, group=group, async_op=True)
        handle.wait()
        return y.tolist()

    assert world.run(work) == [[6.0, 6.0]] * 3
    world.close()


def test_operations_are_noted_once_with_world_ranks():
    from ringlab.world.processes import ProcessRunner

    world = ProcessRunner(3)

    def work():
        from ringlab.world.processes import last_op, staging

        staging.STAGED_DEVICES = ("cpu",)
        journal = last_op.Journal()
        staging.register(journal)
        group = dist.new_group([2, 1], backend=staging.BACKEND)
        if dist.get_rank() == 0:
            return []
        peer = 3 - dist.get_rank()
        if dist.get_rank() == 1:
            dist.send(torch.ones(2), peer, group)
        else:
            dist.recv(torch.ones(2), peer, group)
        return [(e.kind, e.group, e.peer) for e in journal.recorder.recording().events]

    _, one, two = world.run(work)
    world.close()
    assert [kind for kind, _, _ in one] == ["send", "wait"]
    assert [kind for kind, _, _ in two] == ["recv", "wait"]
    assert {group for _, group, _ in one + two} == {(1, 2)}
    assert {peer for _, _, peer in one} == {2}
