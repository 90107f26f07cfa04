"""Ranks that do not give in, do not come back, or are interrupted."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import Deadlock, HungRank, RankFailed, WorldError
from ringlab.world.virtual import crew
from tests.world_virtual.verdicts import check_threads, error_of


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    yield
    check_threads()


class Broken(Exception):
    """An error of the program's own."""


def never_gives_in():
    if dist.get_rank() == 1:
        raise Broken
    while True:
        try:
            dist.barrier()
        except:  # noqa: E722
            continue


def swallows_in_a_context():
    class Swallow:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            return True

    if dist.get_rank() == 1:
        raise Broken
    while True:
        with Swallow():
            dist.send(torch.ones(1), 1)


def communicates_in_finally():
    try:
        if dist.get_rank() == 1:
            raise Broken
        dist.barrier()
    finally:
        dist.barrier()


def goes_on_after_bare_except():
    try:
        if dist.get_rank() == 1:
            raise Broken
        dist.barrier()
    except BaseException:
        pass
    dist.all_reduce(torch.ones(1))
    return "as if nothing had happened"


@pytest.mark.parametrize(
    "program",
    [never_gives_in, swallows_in_a_context, communicates_in_finally],
)
def test_a_rank_that_catches_everything_ends_all_the_same(program, monkeypatch):
    monkeypatch.setattr(crew, "GRACE", 60)  # so that it ends by itself, not by force
    start = time.monotonic()
    error = error_of(RankFailed, program, 3)
    assert error.rank == 1
    assert isinstance(error.__cause__, Broken)
    assert time.monotonic() - start < 3


def test_a_rank_that_swallows_the_error_of_another_does_not_hide_it():
    assert error_of(WorldError, goes_on_after_bare_except, 2)


def deadlocks_and_swallows():
    while True:
        try:
            dist.recv(torch.ones(1), 1 - dist.get_rank())
        except BaseException:
            time.sleep(0.001)


def test_a_deadlock_cannot_be_swallowed():
    start = time.monotonic()
    assert error_of(Deadlock, deadlocks_and_swallows, 2).cycle == (0, 1)
    assert time.monotonic() - start < 3


def spins():
    while dist.get_rank() == 1:
        pass
    dist.barrier()


def sleeps():
    time.sleep(1.2 if dist.get_rank() == 1 else 0)
    dist.barrier()


def locks_itself_out():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=1.2)


@pytest.mark.parametrize("program", [spins, sleeps, locks_itself_out])
def test_a_rank_that_keeps_its_turn_meets_the_deadline_and_the_report_says_where(program):
    start = time.monotonic()
    error = error_of(HungRank, program, 2, timeout=0.3)
    assert time.monotonic() - start < 3.3
    rank = 0 if program is locks_itself_out else 1
    assert f"rank {rank} kept the turn for more than 0.3 s" in str(error)
    assert f"  rank {rank}: running at test_hangs.py:" in str(error)
    if program is not locks_itself_out:
        assert "  rank 0: waits in barrier over ranks [0, 1] at test_hangs.py:" in str(error)


def test_the_deadline_of_one_call_can_be_set():
    with pytest.raises(HungRank, match=r"more than 0\.2 s"):
        World(2).run(spins, timeout=0.2)


def works_long_but_keeps_in_touch():
    for _ in range(10):
        time.sleep(0.1)
        dist.all_reduce(torch.ones(1))


def test_a_rank_that_calls_into_the_world_is_not_late():
    World(1, timeout=0.5).run(works_long_but_keeps_in_touch)


def interrupt_after(seconds):
    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    return timer


def spins_everywhere():
    while True:
        pass


def talks_for_ever():
    while True:
        dist.all_reduce(torch.ones(1))


# What unwinds a rank may come while it runs a callback of the interpreter's, which drops it with
# a warning; the world then tries again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("program", [spins_everywhere, talks_for_ever, sleeps])
def test_an_endless_loop_can_be_interrupted_and_the_next_run_is_fine(program):
    timer = interrupt_after(0.3)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        World(3).run(program)
    assert time.monotonic() - start < 3.3
    timer.join()
    assert World(3).run(dist.get_rank) == [0, 1, 2]


SCRIPT = """
import sys, time
import torch.distributed as dist
from ringlab.world import World
from ringlab.world.virtual import crew
def loop():
    print("in", flush=True)
    while True:
        pass
try:
    World(3).run(loop)
except KeyboardInterrupt:
    print("interrupted", World(3).run(dist.get_rank), flush=True)
"""


if sys.platform != "win32":  # which delivers no SIGINT to one process alone

    def test_ctrl_c_ends_an_endless_loop_in_a_script():
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        time.sleep(0.2)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted [0, 1, 2]\n"
        assert time.monotonic() - start < 3
        process.wait(timeout=30)
        assert process.returncode == 0
