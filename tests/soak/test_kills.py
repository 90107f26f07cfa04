"""Ranks killed at random moments: the run ends at once, nothing stays, the next one is right."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist

from ringlab import World
from ringlab.world.errors import RankFailed
from ringlab.world.processes.launcher import launcher
from tests.soak.programs import blocks, pass_around, ring, ring_problem
from tests.world_processes.observe import descendants, eventually

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

BACK = 3.0  # seconds from the kill to the error
SOONEST, LATEST = 0.05, 0.4  # seconds into a run at which a kill may come
STARTING = 0.15  # seconds after the first of new ranks is seen at which one may be killed
AFTER = 12  # hops of the run that follows


def reduce_forever() -> None:
    total = torch.ones(1000)
    while True:
        dist.all_reduce(total)


def compute_forever() -> None:
    if dist.get_rank():
        dist.recv(torch.empty(1), src=0)
    while True:
        torch.randn(64, 64) @ torch.randn(64, 64)


def attend_forever() -> None:
    ring(ring_problem(dist.get_world_size()), 1_000_000, 0)


def hop_forever() -> None:
    pass_around(1_000_000, 0)


def make_groups_forever() -> None:
    while True:
        group = dist.new_group()
        dist.barrier(group=group)
        dist.destroy_process_group(group)


PROGRAMS = (
    reduce_forever,
    compute_forever,
    attend_forever,
    hop_forever,
    make_groups_forever,
    None,
)
"""None: the rank dies while no program runs."""


def leftovers() -> tuple[set[str], int, int]:
    """Shared memory of the system, and open files of this process and of the fork server."""
    memory = Path("/dev/shm")
    names = {entry.name for entry in memory.iterdir()} if memory.is_dir() else set()
    return names, psutil.Process().num_fds(), psutil.Process(launcher().pid).num_fds()


@pytest.fixture(params=[pytest.param((3, 3), id="3")] + [
    pytest.param((size, kills), id=f"{size}-{kills}", marks=pytest.mark.slow)
    for size, kills in ((2, 13), (3, 13), (5, 12), (8, 12))
])  # fmt: skip
def plan(request: pytest.FixtureRequest) -> Iterator[tuple[World, int]]:
    """A world, and how many of its ranks will be killed, one after the other."""
    size, kills = request.param
    with World(size, backend="gloo") as world:
        yield world, kills


@pytest.mark.parametrize(
    ("size", "kills"), [(3, 3), *(pytest.param(n, 12, marks=pytest.mark.slow) for n in (2, 5, 8))]
)
def test_a_rank_killed_while_ranks_start_is_named(size: int, kills: int) -> None:
    draw = random.Random(size)
    with World(size, backend="gloo") as world:
        world.run(pass_around, AFTER, 0)
        before = leftovers()
        for number in range(kills):
            world.close()
            others = set(descendants(launcher().pid))
            thread, kill = kill_when_seen(others, draw.uniform(0, STARTING), draw)
            with pytest.raises(RankFailed, match="killed by SIGKILL"):
                world.run(hop_forever)
            assert time.monotonic() - kill[1] < BACK
            thread.join()
            assert eventually(lambda pid=kill[0]: not psutil.pid_exists(pid), BACK)
            assert world.run(pass_around, AFTER, number) == blocks(size, AFTER)
            assert eventually(lambda: leftovers() == before, BACK)


def kill_when_seen(
    others: set[int], moment: float, draw: random.Random
) -> tuple[threading.Thread, list[Any]]:
    """Kill one of the ranks that are about to start; the list then has which, and the time."""
    done: list[Any] = []

    def kill() -> None:
        new: list[int] = []
        while not new:
            new = sorted(set(descendants(launcher().pid)) - others)
        time.sleep(moment)
        victim = draw.choice(sorted(set(descendants(launcher().pid)) - others))
        done.extend((victim, time.monotonic()))
        os.kill(victim, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread, done


def kill_soon(pid: int, moment: float) -> tuple[threading.Thread, list[float]]:
    """Kill a process at some moment from now; the list then has the time."""
    when: list[float] = []

    def kill() -> None:
        time.sleep(moment)
        when.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread, when


def seconds_until_error(
    world: World, program: Callable[[], None], rank: int, pid: int, moment: float
) -> float:
    """How long the error took that names the killed rank."""
    thread, when = kill_soon(pid, moment)
    with pytest.raises(RankFailed, match="killed by SIGKILL") as caught:
        world.run(program)
    took = time.monotonic() - when[0]
    thread.join()
    assert caught.value.rank == rank
    return took


def test_a_killed_rank_ends_the_run_at_once_and_leaves_nothing(plan: tuple[World, int]) -> None:
    world, kills = plan
    draw = random.Random(world.size)
    world.run(pass_around, AFTER, 0)
    before = leftovers()
    for number in range(kills):
        pids = world.run(os.getpid)
        rank, program = draw.randrange(world.size), PROGRAMS[number % len(PROGRAMS)]
        if program is None:
            os.kill(pids[rank], signal.SIGKILL)
        else:
            took = seconds_until_error(
                world, program, rank, pids[rank], draw.uniform(SOONEST, LATEST)
            )
            assert took < BACK
        gone = pids if program else [pids[rank]]
        # a process whose first thread is gone may still hold its connections
        assert eventually(lambda gone=gone: not any(map(psutil.pid_exists, gone)), BACK)
        assert world.run(pass_around, AFTER, number) == blocks(world.size, AFTER)
        assert eventually(lambda: leftovers() == before, BACK)
