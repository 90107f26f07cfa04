"""On real ranks: the results of the virtual world, and gradients under DDP and FSDP2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ringlab import Striped, World, ZigZag
from ringlab.prefill import all_gather_attention, ring_attention
from tests.prefill.cases import (
    Attend,
    Inputs,
    Step,
    assert_exact,
    every_method,
    inputs,
    same_bits,
    step,
    whole,
)
from tests.prefill.models import Block, Log, assert_same_gradients, data, model, train

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("one_thread")]

SIZE = 4
GROUPS = ([0, 1, 2, 3], [1, 3, 2], [3, 1])


@pytest.fixture(scope="module")
def gloo() -> Iterator[World]:
    with World(SIZE, backend="gloo", threads=1) as world:
        yield world


def step_in_groups(method: Attend, given: Inputs) -> list[Step | None]:
    """Steps over all four ranks, over three of them and over two, in an order of their own."""
    found: list[Step | None] = []
    for ranks in GROUPS:
        group = dist.new_group(ranks, sort_ranks=False)
        inside = dist.get_rank() in ranks
        found.append(step(method, given, ZigZag(), causal=True, group=group) if inside else None)
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_real_ranks_compute_the_bits_of_virtual_ones(gloo: World, dtype: torch.dtype) -> None:
    given = inputs(37, dtype=dtype)
    real = gloo.run(step_in_groups, ring_attention, given)
    virtual = World(SIZE).run(step_in_groups, ring_attention, given)
    for mine, theirs in zip(real, virtual, strict=True):
        for found, expected in zip(mine, theirs, strict=True):
            assert (found is None) == (expected is None)
            assert found is None or expected is None or same_bits(found, expected)


def test_real_ranks_compute_all_gather_exactly(gloo: World) -> None:
    """Gloo sums in an order of its own, so the last bits of dK and dV are its own too."""
    given = inputs(37)
    parts = gloo.run(step_in_groups, all_gather_attention, given)
    for column, ranks in zip(zip(*parts, strict=True), GROUPS, strict=True):
        mine = [column[rank] for rank in ranks]
        assert_exact(whole(mine, ZigZag()), given, causal=True)


@every_method
def test_real_ranks_send_what_virtual_ones_send(gloo: World, method: Attend) -> None:
    sent = []
    for world in (gloo, World(SIZE)):
        world.run(step, method, inputs(37), Striped(), causal=True)
        sent.append([world.timeline.hops(rank) for rank in range(SIZE)])
    assert sent[0] == sent[1]


def wrapped(how: str, net: nn.Sequential) -> nn.Module:
    if how == "DDP":
        return nn.parallel.DistributedDataParallel(net)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in net:
        if isinstance(layer, Block):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    return net


def train_wrapped(how: str, x: Tensor, target: Tensor) -> Log:
    """Training on the rank's tokens; DDP and FSDP average over W ranks, so the loss is W times."""
    size = dist.get_world_size()
    mine = (ZigZag().shard(t, dist.get_rank(), size) for t in (x, target))
    net = wrapped(how, model(ring_attention))
    return train(net, *mine, scale=size / x.shape[1], steps=2)


@pytest.fixture(scope="module")
def pair() -> Iterator[World]:
    """Two ranks: what these tests import takes each rank seconds."""
    with World(2, backend="gloo", threads=1) as world:
        yield world


@pytest.mark.parametrize("how", ["DDP", "FSDP2"])
def test_report_e8_gradients_of_parameters_are_those_of_one_device(pair: World, how: str) -> None:
    x, target = data(13)
    expected = train(model(None), x, target, scale=1 / 13, steps=2)
    for found in pair.run(train_wrapped, how, x, target):
        assert_same_gradients(found, expected)
