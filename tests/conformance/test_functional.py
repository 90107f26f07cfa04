"""Functional collectives, which pass no Python method of a group, are recorded all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

from ringlab import World
from ringlab.calls import exchange
from tests.conformance.programs import communication
from tests.gpu.places import ON_GPUS, Ranks

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]
SIZE = 3


@pytest.fixture(scope="module")
def gloo() -> Iterator[World]:
    with World(SIZE, backend="gloo", threads=1) as world:
        yield world


def split(rank: int, size: int) -> tuple[list[int], list[int]]:
    """Rows that a rank receives from and sends to each, in an exchange in which rank r gets r+1."""
    return [rank + 1] * size, [other + 1 for other in range(size)]


def operators() -> None:
    """What the Python functions call; they themselves load the compiler, which takes seconds."""
    ops, name = torch.ops._c10d_functional, dist.group.WORLD.group_name
    rank, size = dist.get_rank(), dist.get_world_size()
    received, sent = split(rank, size)
    x = torch.ones(sum(sent), 2)
    for result in (
        ops.all_reduce(x, "max", name),
        ops.all_reduce_(x.clone(), "sum", name),
        ops.all_gather_into_tensor(x, size, name),
        ops.reduce_scatter_tensor(torch.ones(size, 2), "sum", size, name),
        ops.all_to_all_single(x, received, sent, name),
        ops.broadcast(x, 1, name),
    ):
        ops.wait_tensor(result)


def one_by_one() -> None:
    rank, size, world = dist.get_rank(), dist.get_world_size(), dist.group.WORLD
    received, sent = split(rank, size)
    funcol.all_reduce(torch.ones(2), "max", world).wait()
    funcol.all_gather_tensor(torch.ones(2, 5), 0, world).wait()
    funcol.reduce_scatter_tensor(torch.ones(2 * size, 5), "sum", 0, world).wait()
    funcol.all_to_all_single(torch.ones(sum(sent)), received, sent, world).wait()
    funcol.broadcast(torch.ones(2), 1, world).wait()


def in_use() -> float:
    """The wait is in the use of the result."""
    y = funcol.all_reduce(torch.ones(1), "sum", dist.group.WORLD)
    dist.barrier()
    return (y + 1).item()


def in_a_group() -> None:
    group = dist.new_group([1, 2])
    if dist.get_rank():
        funcol.all_reduce(torch.ones(2), "sum", group).wait()


def through_autograd() -> None:
    x = torch.ones(2 * dist.get_world_size()).requires_grad_()
    y = funcol.reduce_scatter_tensor_autograd(x, "sum", 0, dist.group.WORLD)
    (y * torch.arange(2.0)).sum().backward()


def several() -> None:
    size, world = dist.get_world_size(), dist.group.WORLD
    xs = [torch.ones(size), torch.ones(2 * size)]
    for results in (
        funcol.all_reduce_coalesced(xs, "sum", world),
        funcol.all_gather_into_tensor_coalesced(xs, world),
        funcol.reduce_scatter_tensor_coalesced(xs, "sum", [0, 0], world),
    ):
        for result in results:
            _ = result + 0


def mixed_with_others() -> None:
    y = funcol.all_reduce(torch.ones(4), "sum", dist.group.WORLD)
    exchange.all_gather(torch.ones(3 * dist.get_world_size()), torch.ones(3), dist.group.WORLD)
    y.wait()


def distributed_tensor() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    x = distribute_tensor(torch.ones(6, 4), mesh, [Shard(0)])
    (x @ x.mT.redistribute(mesh, [Replicate()])).full_tensor()


def test_gloo_records_the_operators_that_the_virtual_world_records(gloo: World) -> None:
    real = communication(gloo, operators)
    assert real == communication(World(SIZE), operators)
    assert real.count("collective", 0) == real.count("wait", 0) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [one_by_one, several, in_use, in_a_group, through_autograd, mixed_with_others]
)
def test_gloo_records_what_the_virtual_world_records(gloo: World, program) -> None:
    real = communication(gloo, program)
    assert real == communication(World(SIZE), program)
    assert real.count("collective") >= 2


@pytest.mark.parametrize("place", ON_GPUS)
def test_ranks_on_gpus_record_what_the_virtual_world_records(place: Ranks) -> None:
    with place.start() as world:
        for program in (operators, one_by_one, several, through_autograd, mixed_with_others):
            real, virtual = (communication(w, program) for w in (world, World(world.size)))
            assert real == virtual, program.__name__


@pytest.mark.slow
def test_distributed_tensors_are_seen_with_their_bytes(gloo: World) -> None:
    real, virtual = (communication(w, distributed_tensor) for w in (gloo, World(SIZE)))
    for rank in range(SIZE):
        assert real.hops(rank) == virtual.hops(rank)
    assert real.bytes_sent(0) > 0


def left_behind() -> None:
    """Uses the operator itself, which gives a plain tensor, and never waits for it."""
    torch.ops._c10d_functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD.group_name)
    dist.barrier()


def test_a_result_that_nobody_waited_for_is_named_after_the_run() -> None:
    with World(2, backend="gloo", threads=1) as world, pytest.warns(RuntimeWarning) as caught:
        world.run(left_behind)
    text = str(caught[0].message)
    assert "all_reduce over ranks [0, 1], issued at test_functional.py" in text
