from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

import pytest
import torch
import torch.distributed as dist

from ringlab.world.errors import RankFailed, WorldError
from ringlab.world.processes import ProcessRunner

pytestmark = pytest.mark.processes


def failure(world: ProcessRunner, fn, *args) -> RankFailed:
    """The error with which a run ends, which must not take long."""
    start = time.monotonic()
    with pytest.raises(RankFailed) as caught:
        world.run(fn, args)
    assert time.monotonic() - start < 3
    return caught.value


def test_an_error_shows_its_rank_its_line_and_where_the_others_stood(world):
    def work():
        if dist.get_rank() == 2:
            raise ValueError("bad shape")  # the line to show
        dist.barrier()  # the line to show for the others

    error = failure(world, work)
    assert (error.rank, error.summary) == (2, "ValueError: bad shape")
    lines = str(error).splitlines()
    assert lines[0] == "rank 2 failed: ValueError: bad shape"
    assert lines[2] == "Traceback of rank 2 (most recent call last):"
    assert 'raise ValueError("bad shape")  # the line to show' in error.traceback
    assert f'File "{__file__}"' in error.traceback
    assert "rank_main" not in error.traceback
    for rank in (0, 1):
        assert f"rank {rank} stood at test_failures.py" in error.others
    assert error.others.count("dist.barrier()  # the line to show for the others") == 2


def test_causes_of_an_error_are_shown(world):
    def work():
        try:
            {}["missing"]
        except KeyError as error:
            raise RuntimeError("no such thing") from error

    trace = failure(world, work).traceback
    assert trace.index("KeyError: 'missing'") < trace.index("direct cause")
    assert trace.index("direct cause") < trace.index("RuntimeError: no such thing")


def test_the_guilty_rank_is_named_although_the_others_failed_before_it(world):
    def work():
        if dist.get_rank() == 1:
            time.sleep(0.3)
            raise ValueError("the cause")
        raise RuntimeError("[pair.cc:553] Connection closed by peer [127.0.0.1]:10459")

    error = failure(world, work)
    assert (error.rank, error.summary) == (1, "ValueError: the cause")
    assert "rank 0 lost its connection to another rank" in error.others


def test_an_error_raised_from_a_lost_connection_is_a_consequence(world):
    def work():
        if dist.get_rank() == 0:
            time.sleep(0.2)
            os._exit(9)
        try:
            dist.recv(torch.zeros(4), src=0)
        except RuntimeError as error:
            raise ValueError("cannot go on") from error

    error = failure(world, work)
    assert (error.rank, error.summary) == (0, "its process ended with exit code 9")


def test_of_two_errors_the_earlier_one_counts(world):
    def work():
        time.sleep({0: 0.06, 1: 0.0, 2: 0.03}[dist.get_rank()])
        raise ValueError(f"error of {dist.get_rank()}")

    assert failure(world, work).rank == 1


def test_a_lost_connection_without_any_other_cause_is_reported_itself(world):
    def work():
        if dist.get_rank() == 1:
            dist.destroy_process_group()
            return
        dist.recv(torch.zeros(4), src=1)

    error = failure(world, work)
    assert error.rank in (0, 2)
    assert "onnection" in error.summary


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os._exit(3), "ended with exit code 3"),
        (lambda: os.abort(), "was killed by SIGABRT"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"),
        (lambda: ctypes.string_at(0), "was killed by SIGSEGV"),
    ],
    ids=["exit", "abort", "kill", "segfault"],
)
def test_a_rank_that_dies_is_named_with_the_way_it_died(world, end, words):
    def work():
        if dist.get_rank() == 1:
            end()
        dist.barrier()

    start = time.monotonic()
    error = failure(world, work)
    assert time.monotonic() - start < 1
    assert error.rank == 1
    assert words in error.summary


def test_a_crash_shows_the_line_at_which_it_happened(world):
    def work():
        if dist.get_rank() == 1:
            os.abort()  # here

    assert "os.abort()  # here" in failure(world, work).traceback


def test_a_receive_buffer_that_is_too_small_names_the_rank_that_gloo_kills(world):
    def work():
        if dist.get_rank() == 0:
            dist.send(torch.ones(1000), 1)
        elif dist.get_rank() == 1:
            dist.recv(torch.zeros(10), 0)
        dist.barrier()

    error = failure(world, work)
    assert error.rank == 1
    assert "SIGABRT" in error.summary
    assert "dist.recv(torch.zeros(10), 0)" in error.traceback


def test_sys_exit_is_a_failure_of_its_rank_and_not_the_end_of_the_world(world):
    error = failure(world, lambda: sys.exit(4) if dist.get_rank() == 0 else dist.barrier())
    assert (error.rank, error.summary) == (0, "SystemExit: 4")


def test_an_argument_that_ranks_cannot_read_is_an_error_of_the_run(world):
    class OnlyHere:
        def __reduce__(self):
            return __import__, ("no_such_module_anywhere",)

    assert "no_such_module_anywhere" in failure(world, print, OnlyHere()).summary


def test_a_result_that_the_parent_cannot_read_is_an_error_of_the_run(world):
    def work():
        class OnlyThere:
            def __reduce__(self):
                return __import__, ("no_such_module_anywhere",)

        return OnlyThere()

    error = failure(world, work)
    assert error.rank == 0
    assert "result cannot be read" in error.summary


def test_the_next_run_after_a_failure_works_and_starts_quickly(world):
    seconds = []
    for _ in range(3):
        failure(world, lambda: 1 / 0)
        start = time.monotonic()
        assert world.run(dist.get_world_size) == [3, 3, 3]
        seconds.append(time.monotonic() - start)
    assert min(seconds) < 1.25  # usually 0.15 to 0.25


def test_a_rank_that_dies_between_runs_is_replaced_unseen(world):
    os.kill(world.run(os.getpid)[1], signal.SIGKILL)
    time.sleep(0.1)
    assert world.run(dist.get_rank) == [0, 1, 2]


def test_a_fork_server_that_dies_is_replaced(world):
    os.kill(world._generation.launcher.pid, signal.SIGKILL)
    time.sleep(0.2)
    assert world.run(dist.get_rank) == [0, 1, 2]


def test_a_fork_server_that_dies_during_a_run_ends_it(world):
    server = world._generation.launcher.pid
    error = failure(world, lambda pid: (os.kill(pid, signal.SIGKILL), time.sleep(60)), server)
    assert "was lost" in error.summary
    assert world.run(dist.get_rank) == [0, 1, 2]


def test_ranks_that_cannot_start_say_why(monkeypatch):
    from ringlab.world.processes import launcher

    monkeypatch.setattr(launcher, "_current", None)
    monkeypatch.setattr(launcher, "command", lambda *_: [sys.executable, "-c", "1 / 0"])
    world = ProcessRunner(2)
    with pytest.raises(WorldError, match="ZeroDivisionError"):
        world.run(int)


def test_a_rank_that_cannot_join_shows_why(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "nonsense")
    world = ProcessRunner(2)
    with pytest.raises(RankFailed, match="TORCH_DISTRIBUTED_DEBUG"):
        world.run(int)
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG")
    assert world.run(dist.get_rank) == [0, 1]
    world.close()


def test_an_error_keeps_its_parts_when_it_is_pickled(world):
    import pickle

    error = failure(world, lambda: 1 / 0)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.rank, copy.traceback) == (str(error), error.rank, error.traceback)
