"""Every collective against values that are worked out by hand, one rank at a time."""

from __future__ import annotations

import operator
from functools import reduce

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from tests.world_virtual.values import GATHER, SCATTER, value, wait

SIZES = (1, 2, 3, 5)
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64)
old_names = pytest.mark.filterwarnings("ignore::FutureWarning")


def reduced(op, size, shape, dtype):
    values = [value(r, shape, torch.float64) for r in range(size)]
    total = {
        "SUM": lambda: reduce(operator.add, values),
        "AVG": lambda: reduce(operator.add, values) / size,
        "PRODUCT": lambda: reduce(operator.mul, values),
        "MAX": lambda: torch.stack(values).amax(0),
        "MIN": lambda: torch.stack(values).amin(0),
    }[op]()
    return total.trunc().to(dtype) if dtype == torch.int64 else total.to(dtype)


def do_all_reduce(op, shape, dtype, asynchronous):
    x = value(dist.get_rank(), shape, dtype)
    wait(dist.all_reduce(x, op=getattr(dist.ReduceOp, op), async_op=asynchronous))
    return x


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", ["SUM", "AVG", "PRODUCT", "MAX", "MIN"])
def test_all_reduce(op, dtype, asynchronous):
    for size in SIZES:
        expected = reduced(op, size, (3, 2), dtype)
        for got in World(size).run(do_all_reduce, op, (3, 2), dtype, asynchronous):
            torch.testing.assert_close(got, expected, rtol=0.01, atol=0)
            assert got.dtype == dtype


@pytest.mark.parametrize("op", ["BAND", "BOR", "BXOR"])
def test_bitwise_all_reduce(op):
    combine = {"BAND": operator.and_, "BOR": operator.or_, "BXOR": operator.xor}[op]
    expected = reduce(combine, [value(r, (5,), torch.int64) for r in range(3)])
    for got in World(3).run(do_all_reduce, op, (5,), torch.int64, False):
        assert torch.equal(got, expected)


def with_nan_and_infinity():
    x = torch.tensor([float("nan") if dist.get_rank() == 1 else 2.0, float("-inf")])
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x


def test_max_keeps_a_nan_and_the_infinity_of_all():
    for got in World(3).run(with_nan_and_infinity):
        assert got[0].isnan()
        assert got[1] == float("-inf")


def do_all_gather(shape, dtype, asynchronous):
    size = dist.get_world_size()
    out = [torch.empty(shape, dtype=dtype) for _ in range(size)]
    wait(dist.all_gather(out, value(dist.get_rank(), shape, dtype), async_op=asynchronous))
    return out


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_gather(dtype, asynchronous):
    for size in SIZES:
        for got in World(size).run(do_all_gather, (2, 3), dtype, asynchronous):
            assert all(torch.equal(g, value(r, (2, 3), dtype)) for r, g in enumerate(got))


def gather_into_slices():
    whole = torch.zeros(4, 6)
    dist.all_gather(list(whole.chunk(2, dim=1)), value(dist.get_rank(), (4, 3)))
    return whole


def test_all_gather_fills_a_list_of_strided_slices():
    expected = torch.cat([value(0, (4, 3)), value(1, (4, 3))], dim=1)
    assert all(torch.equal(got, expected) for got in World(2).run(gather_into_slices))


def do_gather_single(name, stacked, asynchronous):
    size = dist.get_world_size()
    out = torch.empty((size, 2, 3) if stacked else (2 * size, 3))
    wait(getattr(dist, name)(out, value(dist.get_rank(), (2, 3)), async_op=asynchronous))
    return out


@old_names
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("name", GATHER)
def test_all_gather_into_one_tensor(name, stacked, asynchronous):
    for size in SIZES:
        join = torch.stack if stacked else torch.cat
        expected = join([value(r, (2, 3)) for r in range(size)])
        for got in World(size).run(do_gather_single, name, stacked, asynchronous):
            assert torch.equal(got, expected)


def gather_in_place(name):
    rank, size = dist.get_rank(), dist.get_world_size()
    out = torch.zeros(size, 4)
    out[rank] = value(rank, (4,))
    getattr(dist, name)(out.view(-1), out[rank])
    return out


@old_names
@pytest.mark.parametrize("name", GATHER)
def test_all_gather_may_find_its_input_in_its_output(name):
    expected = torch.stack([value(r, (4,)) for r in range(3)])
    assert all(torch.equal(got, expected) for got in World(3).run(gather_in_place, name))


def do_scatter_single(name, op, dtype, asynchronous):
    size = dist.get_world_size()
    out = torch.empty(2, 3, dtype=dtype)
    full = value(dist.get_rank(), (2 * size, 3), dtype)
    op = getattr(dist.ReduceOp, op)
    wait(getattr(dist, name)(out, full, op=op, async_op=asynchronous))
    return out


@old_names
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("op", ["SUM", "MAX"])
@pytest.mark.parametrize("name", SCATTER)
def test_reduce_scatter_of_one_tensor(name, op, dtype, asynchronous):
    for size in SIZES:
        chunks = reduced(op, size, (2 * size, 3), dtype).chunk(size)
        results = World(size).run(do_scatter_single, name, op, dtype, asynchronous)
        assert all(torch.equal(got, chunks[r]) for r, got in enumerate(results))


def do_reduce_scatter_list():
    rank, size = dist.get_rank(), dist.get_world_size()
    out = torch.empty(2, 2)
    strided = [value(rank + 10 * i, (2, 2)).t() for i in range(size)]
    dist.reduce_scatter(out, strided)
    return out


def test_reduce_scatter_of_a_list():
    results = World(3).run(do_reduce_scatter_list)
    for i, got in enumerate(results):
        assert torch.equal(got, sum(value(r + 10 * i, (2, 2)).t() for r in range(3)))


def do_broadcast(root, asynchronous):
    x = value(dist.get_rank(), (3,))
    wait(dist.broadcast(x, root, async_op=asynchronous))
    return x


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("root", [0, 2])
def test_broadcast(root, asynchronous):
    results = World(3).run(do_broadcast, root, asynchronous)
    assert all(torch.equal(got, value(root, (3,))) for got in results)


def do_reduce(root):
    x = value(dist.get_rank(), (3,))
    dist.reduce(x, root)
    return x


def test_reduce_changes_the_roots_tensor_only():
    results = World(3).run(do_reduce, 1)
    assert torch.equal(results[1], reduced("SUM", 3, (3,), torch.float32))
    assert torch.equal(results[0], value(0, (3,)))
    assert torch.equal(results[2], value(2, (3,)))


def do_gather(root):
    rank, size = dist.get_rank(), dist.get_world_size()
    out = [torch.empty(3) for _ in range(size)] if rank == root else None
    dist.gather(value(rank, (3,)), out, dst=root)
    return out


def do_scatter(root):
    rank, size = dist.get_rank(), dist.get_world_size()
    out = torch.empty(3)
    parts = [value(10 + r, (3,)) for r in range(size)] if rank == root else None
    dist.scatter(out, parts, src=root)
    return out


def test_gather_and_scatter():
    gathered = World(3).run(do_gather, 1)
    assert gathered[0] is None
    assert gathered[2] is None
    assert all(torch.equal(got, value(r, (3,))) for r, got in enumerate(gathered[1]))
    scattered = World(3).run(do_scatter, 2)
    assert all(torch.equal(got, value(10 + r, (3,))) for r, got in enumerate(scattered))
