"""No tensor outlives a run, and none that is done with piles up while it lasts."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import Deadlock, RankFailed, UnwaitedHandle


class Broken(Exception):
    """An error of the program's own."""


refs: list = []


def watch(t):
    refs.append(weakref.ref(t))
    return t


def traffic(kind):
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = watch(torch.ones(1000)), watch(torch.empty(1000))
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, (rank + 1) % size), dist.P2POp(dist.irecv, y, (rank - 1) % size)]
    )
    for work in works:
        work.wait()
    out = watch(torch.empty(1000 * size))
    dist.all_gather(list(out.chunk(size)), x)
    future = dist.all_reduce(y, async_op=True).get_future()
    future.wait()
    if kind == "fails":
        raise Broken
    if kind == "deadlocks":
        dist.recv(x, (rank + 1) % size)
    if kind == "unwaited":
        works.append(dist.all_reduce(x, async_op=True))
    return works if kind == "keeps handles" else None


@pytest.mark.parametrize("kind", ["ends", "keeps handles", "fails", "deadlocks", "unwaited"])
def test_no_tensor_outlives_a_run(kind):
    refs.clear()
    gc.disable()
    world, kept = World(3), None
    argument = watch(torch.ones(1000))
    try:
        kept = world.run(traffic_with, argument, kind)
    except (RankFailed, Deadlock, UnwaitedHandle) as error:
        forget_frames(error)
    finally:
        gc.enable()
    if kind == "fails":
        gc.collect()  # an exception and its frames refer to each other
    del argument
    alive = [ref() is not None for ref in refs]
    assert len(alive) >= 4
    assert not any(alive)
    assert kept is None or len(kept) == 3


def traffic_with(argument, kind):
    watch(argument)
    return traffic(kind)


def forget_frames(error):
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__


def buffers_of_a_long_run():
    """Every message has buffers of its own; they must not pile up while the run goes on."""
    rank = dist.get_rank()
    most = 0
    for _ in range(30):
        x = watch(torch.ones(10))
        if rank == 0:
            dist.send(x, 1)
        else:
            dist.recv(x, 0)
        dist.all_reduce(x)
        most = max(most, sum(ref() is not None for ref in refs))
    return most


def test_buffers_are_let_go_while_the_run_goes_on():
    refs.clear()
    assert max(World(2).run(buffers_of_a_long_run)) <= 6
