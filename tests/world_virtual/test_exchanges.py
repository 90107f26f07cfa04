"""All-to-all, barrier, objects, odd tensors, and several collectives in one call."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from tests.world_virtual.values import GATHER, SCATTER, value, wait
from tests.world_virtual.verdicts import ORDERS

SIZES = (1, 2, 3, 5)


def uneven(matrix, dtype, asynchronous):
    """Rank i sends ``matrix[i][j]`` rows to rank j."""
    rank, size = dist.get_rank(), dist.get_world_size()
    send = list(matrix[rank])
    receive = [matrix[j][rank] for j in range(size)]
    out = torch.empty(sum(receive), 2, dtype=dtype)
    rows = value(rank, (sum(send), 2), dtype)
    wait(dist.all_to_all_single(out, rows, receive, send, async_op=asynchronous))
    return out


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_all_to_all_single_with_uneven_splits(dtype, order, asynchronous):
    matrix = ((0, 2, 1), (3, 1, 0), (4, 0, 5))
    results = World(3, order=order).run(uneven, matrix, dtype, asynchronous)
    for j, got in enumerate(results):
        parts = []
        for i, row in enumerate(matrix):
            start = sum(row[:j])
            parts.append(value(i, (sum(row), 2), dtype)[start : start + row[j]])
        assert torch.equal(got, torch.cat(parts))


def even():
    rank, size = dist.get_rank(), dist.get_world_size()
    out = torch.empty(2 * size)
    dist.all_to_all_single(out, value(rank, (2 * size,)))
    return out


def as_lists():
    rank, size = dist.get_rank(), dist.get_world_size()
    out = [torch.empty(2) for _ in range(size)]
    dist.all_to_all(out, list(value(rank, (2 * size,)).chunk(size)))
    return torch.cat(out)


@pytest.mark.parametrize("program", [even, as_lists])
def test_all_to_all_with_equal_parts(program):
    for size in SIZES:
        for j, got in enumerate(World(size).run(program)):
            expected = [value(i, (2 * size,)).chunk(size)[j] for i in range(size)]
            assert torch.equal(got, torch.cat(expected))


stops = []


def stop_at_barrier():
    for step in range(3):
        stops.append((step, dist.get_rank()))
        dist.barrier()


@pytest.mark.parametrize("order", ORDERS)
def test_nobody_passes_a_barrier_before_all_have_come(order):
    stops.clear()
    World(4, order=order).run(stop_at_barrier)
    assert [step for step, _ in stops] == sorted(step for step, _ in stops)


def objects():
    rank, size = dist.get_rank(), dist.get_world_size()
    every = [None] * size
    dist.all_gather_object(every, {"rank": rank, "text": "x" * rank})
    shared = [f"from {rank}", rank]
    dist.broadcast_object_list(shared, src=1)
    own = [None]
    dist.scatter_object_list(own, [f"for {r}" for r in range(size)] if rank == 0 else None, src=0)
    at_root = [None] * size if rank == 2 else None
    dist.gather_object(rank * rank, at_root, dst=2)
    return every, shared, own, at_root


def test_object_collectives():
    for rank, (every, shared, own, at_root) in enumerate(World(3).run(objects)):
        assert every == [{"rank": r, "text": "x" * r} for r in range(3)]
        assert shared == ["from 1", 1]
        assert own == [f"for {rank}"]
        assert at_root == ([0, 1, 4] if rank == 2 else None)


def object_messages():
    if dist.get_rank() == 0:
        dist.send_object_list([{"a": 1}, "b"], dst=1)
        return None
    got = [None, None]
    dist.recv_object_list(got, src=0)
    return got


def test_object_messages():
    assert World(2).run(object_messages)[1] == [{"a": 1}, "b"]


def empty():
    x = torch.empty(0)
    dist.all_reduce(x)
    out = torch.empty(0, 3)
    dist.all_to_all_single(out, torch.empty(0, 3), [0, 0], [0, 0])
    other = 1 - dist.get_rank()
    ops = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, torch.empty(0), other)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return out.shape


@pytest.mark.parametrize("order", ORDERS)
def test_tensors_without_elements(order):
    assert World(2, order=order).run(empty) == [(0, 3), (0, 3)]


def complex_numbers():
    rank = dist.get_rank()
    x = torch.tensor([complex(rank, 1)])
    dist.all_reduce(x)
    y = torch.zeros(1, dtype=torch.complex64)
    ops = [dist.P2POp(dist.isend, x + rank, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return x.item(), y.item()


def test_complex_numbers_travel_as_pairs():
    assert World(2).run(complex_numbers) == [(1 + 2j, 2 + 2j), (1 + 2j, 1 + 2j)]


def on_meta():
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.empty(4, 2, device="meta", dtype=torch.bfloat16)
    dist.all_reduce(x)
    out = torch.empty(4 * size, 2, device="meta", dtype=torch.bfloat16)
    getattr(dist, GATHER[0])(out, x)
    getattr(dist, SCATTER[0])(x, out)
    dist.all_to_all_single(x, x.clone())
    dist.broadcast(x, 1)
    dist.send(x, 1 - rank) if rank else dist.recv(x, 1 - rank)
    return x.device.type


def test_meta_tensors_go_through_every_collective_and_their_bytes_are_counted():
    world = World(2)
    assert world.run(on_meta) == ["meta", "meta"]
    size = 4 * 2 * 2
    names = {e.name: e for e in world.timeline.of(1) if e.kind != "wait"}
    assert names["all_reduce"].bytes_out == size
    assert names["all_gather"].bytes_in == size
    assert names["reduce_scatter"].bytes_out == size
    assert names["all_to_all"].bytes_out == size // 2
    assert names["broadcast"].bytes_out == 0 or names["broadcast"].bytes_in == 0
    assert names["send"].bytes_out == size


def everything():
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.ones(2 * size)
    dist.all_reduce(x)
    getattr(dist, GATHER[0])(torch.empty(2 * size * size), x)
    getattr(dist, SCATTER[0])(torch.empty(2), x)
    dist.all_to_all_single(torch.empty(2 * size), x)
    dist.barrier()
    objects()
    dist.new_group([0, 1])
    return rank


def test_no_warning_of_any_kind_comes_out_of_a_world():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        World(3).run(everything)
    assert [str(w.message) for w in caught] == []


def coalesced(kind):
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.group.WORLD
    tensors = [value(rank, (2,)), value(rank + 5, (3,))]
    with dist._coalescing_manager(group=group, async_ops=True) as manager:
        if kind == "reduce":
            outs = tensors
            for x in tensors:
                dist.all_reduce(x)
        elif kind == "gather":
            outs = [torch.empty(size * x.numel()) for x in tensors]
            for out, x in zip(outs, tensors, strict=True):
                getattr(dist, GATHER[0])(out, x)
        else:
            outs = [torch.empty(x.numel()) for x in tensors]
            for out, x in zip(outs, tensors, strict=True):
                getattr(dist, SCATTER[0])(out, x.repeat(size))
    manager.wait()
    return outs


@pytest.mark.parametrize("kind", ["reduce", "gather", "scatter"])
def test_several_collectives_in_one_call(kind):
    world = World(2)
    for rank, (one, two) in enumerate(world.run(coalesced, kind)):
        if kind == "gather":
            assert torch.equal(one, torch.cat([value(r, (2,)) for r in range(2)]))
            assert torch.equal(two, torch.cat([value(r + 5, (3,)) for r in range(2)]))
        else:
            assert torch.equal(one, value(0, (2,)) + value(1, (2,)))
            assert torch.equal(two, value(5, (3,)) + value(6, (3,)))
        (event,) = world.timeline.of(rank, "collective")
        assert event.bytes_out == 4 * (2 + 3)
