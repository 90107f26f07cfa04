from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from ringlab.world.errors import HungRank
from ringlab.world.processes import ProcessRunner

two_gpus = pytest.mark.nccl


@pytest.fixture(scope="module")
def gpus() -> Iterator[ProcessRunner]:
    world = ProcessRunner(2, backend="nccl", timeout=60.0)
    yield world
    world.close()


def hop() -> float:
    """One hop of a ring, on whatever device is the default."""
    rank, size = dist.get_rank(), dist.get_world_size()
    sent, got = torch.full((4,), float(rank)), torch.zeros(4)
    ops = [
        dist.P2POp(dist.isend, sent, (rank + 1) % size),
        dist.P2POp(dist.irecv, got, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return got.mean().item()


@two_gpus
def test_each_rank_has_a_gpu_and_arguments_arrive_on_it(gpus):
    def look(x):
        return x.device.index, torch.empty(1).device.index, torch.cuda.current_device(), x + 1

    assert [tuple(end[:3]) for end in gpus.run(look, (torch.ones(3),))] == [(0, 0, 0), (1, 1, 1)]
    for *_, back in gpus.run(look, (torch.ones(3),)):
        assert back.device.type == "cpu"
        assert back.tolist() == [2.0] * 3


@two_gpus
def test_a_ring_on_gpus_is_right_and_leaves_the_timeline_of_the_virtual_world(gpus):
    from ringlab.world import World

    assert gpus.run(hop) == [1.0, 0.0]
    virtual = World(2)
    assert virtual.run(hop) == [1.0, 0.0]
    assert gpus.timeline.communication() == virtual.timeline.communication()


@two_gpus
def test_the_first_thing_a_new_group_does_may_be_a_message(gpus):
    def work():
        group = dist.new_group([0, 1])
        x = torch.full((4,), float(dist.get_rank()))
        if dist.get_rank() == 0:
            dist.send(x, 1, group=group)
        else:
            dist.recv(x, 0, group=group)
        return x[0].item()

    assert gpus.run(work) == [0.0, 0.0]


@two_gpus
def test_a_hang_names_the_operation_that_the_gpu_waits_in_although_the_host_went_on(gpus):
    def work():
        if dist.get_rank() == 0:
            got = torch.zeros(4)
            dist.irecv(got, 1).wait()  # nobody sends
            torch.cuda.synchronize()  # where the host stands

    with pytest.raises(HungRank) as caught:
        gpus.run(work, timeout=5)
    text = str(caught.value)
    assert "torch.cuda.synchronize()  # where the host stands" in text
    assert "not finished: recv of 16 bytes from rank 1" in text
    assert "dist.irecv(got, 1).wait()  # nobody sends" in text
    assert gpus.run(dist.get_rank) == [0, 1]


@two_gpus
def test_the_parent_and_the_fork_server_do_not_start_cuda(gpus):
    started = torch.cuda.is_initialized()
    gpus.run(hop)
    assert torch.cuda.is_initialized() == started


@pytest.mark.cuda
def test_ranks_share_a_gpu_through_host_memory():
    world = ProcessRunner(2 * torch.cuda.device_count(), backend="nccl", share_gpu=True)
    size = world.size
    assert world.run(hop) == [float((rank - 1) % size) for rank in range(size)]

    def total():
        x = torch.ones(3) * dist.get_rank()
        dist.all_reduce(x)
        return x.device.type, x.tolist()

    assert world.run(total) == [("cuda", [float(sum(range(size)))] * 3)] * size
    world.close()
