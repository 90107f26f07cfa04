"""A world inside a process that has a life of its own: groups, threads, other worlds."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.distributed import distributed_c10d as c10d

import ringlab
from ringlab.world import World
from ringlab.world.errors import BadCall, HungRank, RankFailed
from tests.world_virtual.verdicts import error_of


def use():
    x = torch.ones(1)
    dist.all_reduce(x)
    group = dist.new_group([0, 1])
    y = torch.ones(1)
    dist.all_reduce(y, group=group)
    return x.item() + y.item() + (funcol.all_reduce(x, "sum", dist.group.WORLD) + 0).item()


def fail():
    use()
    raise ValueError


def clean_up():
    use()
    dist.destroy_process_group()


@pytest.fixture
def own_group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.new_group([0])
    dist.destroy_process_group()


@pytest.mark.parametrize("program", [use, fail, clean_up])
def test_the_process_keeps_its_own_group(own_group, program):
    world_before, tables = (
        dist.group.WORLD,
        {
            name: dict(getattr(c10d._world, name))
            for name in ("pg_map", "pg_names", "pg_group_ranks", "tags_to_pg", "pg_to_tag")
        },
    )
    object_before, count = c10d._world, c10d._world.group_count
    try:
        World(2).run(program)
    except RankFailed:
        assert program is fail
    assert dist.group.WORLD is world_before
    assert c10d._world is object_before
    assert c10d._world.group_count == count
    for name, table in tables.items():
        assert dict(getattr(c10d._world, name)) == table
    assert dist.get_backend() == "gloo"
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.all_reduce(x, group=own_group)
    assert (funcol.all_reduce(x, "sum", own_group) + 0).item() == 1.0
    assert (funcol.all_reduce(x, "sum", dist.group.WORLD) + 0).item() == 1.0


def test_ranks_do_not_see_the_group_of_the_process(own_group):
    backends = World(2).run(lambda: (dist.get_backend(), dist.get_world_size()))
    assert backends == [("ringlab_virtual", 2)] * 2


def test_another_thread_sees_the_group_of_the_process_while_a_world_runs(own_group):
    seen = []

    def program():
        if dist.get_rank() == 0:
            thread = threading.Thread(
                target=lambda: seen.append((dist.get_backend(), dist.get_world_size()))
            )
            thread.start()
            thread.join()
        dist.barrier()

    World(2).run(program)
    assert seen == [("gloo", 1)]


def test_nothing_is_initialised_outside_of_a_run():
    World(2).run(use)
    assert not dist.is_initialized()
    assert c10d._world.pg_map == {}


def choose_backends():
    import ringlab.world.virtual  # noqa: F401

    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    assert dist.get_default_backend_for_device("cpu") == "gloo"
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.destroy_process_group()
    print("fine")


def test_importing_the_world_does_not_change_the_default_backends():
    code = f"from tests.world_virtual.test_isolation import *; {choose_backends.__name__}()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "fine\n", done.stderr


def call_from_another_thread(how):
    group = dist.group.WORLD
    calls = {
        "default": lambda: dist.all_reduce(torch.ones(1)),
        "group": lambda: dist.all_reduce(torch.ones(1), group=group),
        "send": lambda: dist.send(torch.ones(1), 1),
        "rank": lambda: dist.get_rank(),
    }
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(calls[how]).result()


@pytest.mark.parametrize("how", ["default", "group", "send", "rank"])
def test_a_thread_that_is_no_rank_may_not_communicate(how):
    error = error_of(RankFailed, call_from_another_thread, 2, how)
    assert isinstance(error.__cause__, BadCall)
    assert "Only the thread in which the virtual world runs a rank" in str(error)


def wait_in_another_thread():
    work = dist.all_reduce(torch.ones(1), async_op=True)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(work.wait).result()


def test_a_thread_that_is_no_rank_may_not_wait():
    assert isinstance(error_of(RankFailed, wait_in_another_thread, 2).__cause__, BadCall)


def test_other_threads_may_ask_whether_anything_is_initialised():
    def program():
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(dist.is_initialized).result()

    assert World(2).run(program) == [False, False]


def another_ranks_group(shared):
    shared[dist.get_rank()] = dist.group.WORLD
    dist.barrier()
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1), group=shared[1])


shared_groups: dict = {}


def test_a_rank_may_not_use_the_group_object_of_another():
    error = error_of(RankFailed, lambda: another_ranks_group(shared_groups), 2)
    assert "used rank 1's group" in str(error)


def keep(kept):
    kept.append((dist.group.WORLD, dist.all_reduce(torch.ones(1), async_op=True)))
    kept[-1][1].wait()


def test_a_group_or_handle_of_a_run_that_is_over_is_refused():
    kept: list = []
    World(2).run(lambda: keep(kept))
    group, work = kept[0]
    error = error_of(RankFailed, lambda: dist.all_reduce(torch.ones(1), group=group), 2)
    assert "belongs to a run that is over" in str(error)
    with pytest.raises(BadCall, match="belongs to a run that is over"):
        work.wait()


def sum_of(count, noise):
    x = torch.zeros(1)
    for _ in range(count):
        y = torch.rand(1)
        dist.all_reduce(y)
        x += y + noise
    return x.item()


def test_worlds_in_two_threads_give_what_each_gives_alone():
    expected = {(size, seed): World(size, seed=seed).run(sum_of, 30, 0.0)
                for size in (2, 3) for seed in (0, 9)}  # fmt: skip
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = {
            key: pool.submit(World(key[0], seed=key[1]).run, sum_of, 30, 0.0) for key in expected
        }
        assert {key: future.result() for key, future in futures.items()} == expected


def outer(inner_size):
    rank = dist.get_rank()
    before = torch.rand(1).item()
    inner = World(inner_size).run(sum_of, 2, float(rank))
    x = torch.ones(1)
    dist.all_reduce(x)
    return before, torch.rand(1).item(), inner, x.item(), dist.get_world_size()


def test_a_rank_may_run_a_world_of_its_own():
    alone = [World(3).run(sum_of, 2, float(r)) for r in range(2)]
    for rank, (before, after, inner, total, size) in enumerate(World(2).run(outer, 3)):
        torch.manual_seed(rank)
        assert (before, after) == (torch.rand(1).item(), torch.rand(1).item())
        assert inner == alone[rank]
        assert (total, size) == (2.0, 2)


def fail_inside():
    World(2).run(fail)


def test_an_error_in_a_world_inside_a_world_names_both_ranks():
    error = error_of(RankFailed, fail_inside, 2)
    assert "rank 0 failed: RankFailed: rank 0 failed: ValueError" in str(error)
    assert isinstance(error.__cause__, RankFailed)
    assert isinstance(error.__cause__.__cause__, ValueError)


def endless_inside():
    def spin():
        while True:
            pass

    World(2).run(spin)


def test_the_deadline_of_the_outer_world_ends_the_inner_one():
    start = time.monotonic()
    error_of(HungRank, endless_inside, 2, timeout=0.5)
    assert time.monotonic() - start < 6
    assert World(2).run(dist.get_rank) == [0, 1]
    assert [t for t in threading.enumerate() if t.name.startswith("ringlab-rank")] == []


def test_a_stuck_thread_that_wakes_up_later_does_no_harm(own_group):
    """It was given up in a sleep; when it goes on, the process has its own groups again."""
    woke = []

    def sleeper():
        if dist.get_rank() == 0:
            try:
                time.sleep(3)
            finally:
                woke.append(dist.is_initialized() and dist.get_backend())
        dist.barrier()

    error_of(HungRank, sleeper, 3, timeout=0.3)
    left = [t.name for t in threading.enumerate() if t.name.startswith("ringlab-rank")]
    assert left == ["ringlab-rank-0"]
    x = torch.ones(1)
    assert (funcol.all_reduce(x, "sum", own_group) + 0).item() == 1.0
    end = time.monotonic() + 10
    while any(t.name.startswith("ringlab-rank") for t in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert woke == ["ringlab_virtual"]
    dist.all_reduce(x, group=own_group)
    assert (funcol.all_reduce(x, "sum", own_group) + 0).item() == 1.0
    assert not isinstance(c10d._world, ringlab.world.virtual.tables._WorldSwitch)
