"""Functional collectives, also those that autograd goes through."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.distributed.device_mesh import init_device_mesh

from ringlab.world import World

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
SIZE = 3


def value(rank, *shape):
    return (torch.arange(1.0, 1 + torch.Size(shape).numel()) * (rank + 1)).view(shape)


def group_spellings():
    ranks = list(range(dist.get_world_size()))
    mesh = init_device_mesh("cpu", (len(ranks),))
    return [dist.group.WORLD, ranks, mesh, (mesh, 0)]


def every_spelling_of_a_group():
    x = value(dist.get_rank(), 2)
    return [funcol.all_reduce(x, "sum", group).wait() for group in group_spellings()]


def test_a_group_may_be_given_as_group_ranks_or_mesh():
    for results in World(SIZE).run(every_spelling_of_a_group):
        assert all(torch.equal(got, sum(value(r, 2) for r in range(SIZE))) for got in results)


def plain():
    rank, world = dist.get_rank(), dist.group.WORLD
    return {
        "max": funcol.all_reduce(value(rank, 2), "max", world).wait(),
        "gather 0": funcol.all_gather_tensor(value(rank, 2, 2), 0, world).wait(),
        "gather 1": funcol.all_gather_tensor(value(rank, 2, 2), 1, world) + 0,
        "scatter 0": funcol.reduce_scatter_tensor(value(rank, 6), "sum", 0, world).wait(),
        "scatter 1": funcol.reduce_scatter_tensor(value(rank, 2, 6), "avg", 1, world) + 0,
        "all to all": funcol.all_to_all_single(
            value(rank, 6), [rank + 1] * SIZE, [1, 2, 3], world
        ).wait(),
        "broadcast": funcol.broadcast(value(rank, 2), 1, world).wait(),
    }


def test_values_of_functional_collectives():
    every = [value(r, 2, 2) for r in range(SIZE)]
    total, wide = sum(value(r, 6) for r in range(SIZE)), sum(value(r, 2, 6) for r in range(SIZE))
    for rank, got in enumerate(World(SIZE).run(plain)):
        assert torch.equal(got["max"], value(2, 2))
        assert torch.equal(got["gather 0"], torch.cat(every))
        assert torch.equal(got["gather 1"], torch.cat(every, dim=1))
        assert torch.equal(got["scatter 0"], total.chunk(SIZE)[rank])
        assert torch.allclose(got["scatter 1"], wide.chunk(SIZE, dim=1)[rank] / SIZE)
        parts = [value(r, 6).split([1, 2, 3])[rank] for r in range(SIZE)]
        assert torch.equal(got["all to all"], torch.cat(parts))
        assert torch.equal(got["broadcast"], value(1, 2))


def several():
    rank, world = dist.get_rank(), dist.group.WORLD
    xs = [value(rank, 3), value(rank + 4, 6)]
    reduced = funcol.all_reduce_coalesced(xs, "sum", world)
    gathered = funcol.all_gather_into_tensor_coalesced(xs, world)
    scattered = funcol.reduce_scatter_tensor_coalesced(xs, "sum", [0, 0], world)
    return [[t + 0 for t in ts] for ts in (reduced, gathered, scattered)]


def test_several_tensors_in_one_functional_call():
    world = World(SIZE)
    for rank, (reduced, gathered, scattered) in enumerate(world.run(several)):
        for i, shift in enumerate((0, 4)):
            every = [value(r + shift, 3 * (i + 1)) for r in range(SIZE)]
            assert torch.equal(reduced[i], sum(every))
            assert torch.equal(gathered[i], torch.cat(every))
            assert torch.equal(scattered[i], sum(every).chunk(SIZE)[rank])
        assert len(world.timeline.of(rank, "collective")) == 3


def gradients(weights):
    """A loss whose gradient differs in every element: sum(weight * output)."""
    rank, world = dist.get_rank(), dist.group.WORLD
    found = {}

    def check(name, x, output):
        x.grad = None
        (output * weights[name][rank]).sum().backward()
        found[name] = x.grad

    x = value(rank, 2).requires_grad_()
    check("gather", x, funcol.all_gather_tensor_autograd(x, 0, world))
    x = value(rank, 6).requires_grad_()
    check("scatter", x, funcol.reduce_scatter_tensor_autograd(x, "sum", 0, world))
    check("all to all", x, funcol.all_to_all_single_autograd(x, [rank + 1] * 3, [1, 2, 3], world))
    return found


def test_autograd_goes_through_functional_collectives():
    shapes = {"gather": [6, 6, 6], "scatter": [2, 2, 2], "all to all": [3, 6, 9]}
    weights = {name: [torch.randn(n) for n in sizes] for name, sizes in shapes.items()}
    w = weights
    for rank, got in enumerate(World(SIZE).run(gradients, weights)):
        assert torch.allclose(got["gather"], sum(w["gather"]).chunk(SIZE)[rank])
        assert torch.allclose(got["scatter"], torch.cat(w["scatter"]))
        parts = [w["all to all"][j].split([j + 1] * 3)[rank] for j in range(SIZE)]
        assert torch.allclose(got["all to all"], torch.cat(parts))


def on_meta():
    x = torch.empty(3, 2, device="meta")
    y = funcol.all_gather_tensor(x, 0, dist.group.WORLD) + 1
    return y.shape, y.device.type


def test_functional_collectives_take_meta_tensors():
    assert World(SIZE).run(on_meta) == [((9, 2), "meta")] * SIZE


def lazily():
    """The wait of a functional collective is in the use of its result."""
    y = funcol.all_reduce(torch.ones(1), "sum", dist.group.WORLD)
    dist.barrier()
    return (y + 1).item()


def test_the_result_is_waited_for_where_it_is_used():
    world = World(2)
    assert world.run(lazily) == [3.0, 3.0]
    names = [(e.kind, e.name) for e in world.timeline.of(0)]
    assert names.index(("wait", "all_reduce")) > names.index(("collective", "barrier"))


def test_no_warning_comes_out():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        World(SIZE).run(lazily)
    assert [str(w.message) for w in caught] == []
