from __future__ import annotations

import itertools
import time

import pytest
import torch
import torch.distributed as dist

from ringlab.world.errors import HungRank
from ringlab.world.processes import ProcessRunner

pytestmark = pytest.mark.processes


def report(world: ProcessRunner, fn, timeout: float = 0.5) -> str:
    """What a run that meets its deadline says; it must come soon after the deadline."""
    start = time.monotonic()
    with pytest.raises(HungRank) as caught:
        world.run(fn, timeout=timeout)
    assert timeout <= time.monotonic() - start < timeout + 5
    return str(caught.value)


def entry(text: str, rank: int) -> str:
    """What a report says about one rank."""
    after = text.split(f"  rank {rank} ")[1]
    return after.split("\n  rank ")[0]


def test_a_hang_shows_the_line_of_each_rank(world):
    def work():
        if dist.get_rank() == 0:
            dist.recv(torch.zeros(10), src=1)  # nobody sends
        elif dist.get_rank() == 1:
            time.sleep(60)  # asleep

    text = report(world, work)
    assert text.startswith("ranks 0, 1 of 3 had not returned after 0.5 s")
    assert "dist.recv(torch.zeros(10), src=1)  # nobody sends" in entry(text, 0)
    assert "in work" in entry(text, 0)
    assert "not finished: recv of 40 bytes from rank 1, issued there" in entry(text, 0)
    assert "time.sleep(60)  # asleep" in entry(text, 1)
    assert entry(text, 2) == "had returned"


def test_a_loop_without_end_shows_its_line(world):
    def work():
        while True:
            pass  # for ever

    assert "pass  # for ever" in report(world, work) or "while True" in report(world, work)


def test_a_rank_stuck_in_c_that_never_lets_python_run_shows_its_line(world):
    def work():
        if dist.get_rank() == 1:
            sum(itertools.repeat(0))  # keeps the interpreter lock

    assert "sum(itertools.repeat(0))  # keeps" in entry(report(world, work), 1)


def test_sends_that_wait_for_each_other_are_shown_as_such(world):
    def work():
        other = {0: 1, 1: 0}.get(dist.get_rank())
        if other is not None:
            dist.send(torch.ones(5), other)

    text = report(world, work)
    for rank in (0, 1):
        assert f"not finished: send of 20 bytes to rank {1 - rank}" in entry(text, rank)


def test_an_operation_that_is_not_finished_is_named_with_the_line_that_issued_it(world):
    def work():
        if dist.get_rank() == 0:
            handle = dist.irecv(torch.zeros(3), 1)  # issued here
            done = dist.all_reduce(torch.ones(1), async_op=True)
            done.wait()
            time.sleep(60)
            handle.wait()
        else:
            dist.all_reduce(torch.ones(1))

    text = entry(report(world, work), 0)
    assert "time.sleep(60)" in text
    assert "not finished: recv of 12 bytes from rank 1, issued at" in text
    assert "dist.irecv(torch.zeros(3), 1)  # issued here" in text


def test_a_batch_and_a_collective_of_a_subgroup_are_named_by_world_ranks(world):
    def work():
        group = dist.new_group([1, 2])
        if dist.get_rank() == 1:
            ops = [dist.P2POp(dist.irecv, torch.zeros(2), group=group, group_peer=1)]
            [w.wait() for w in dist.batch_isend_irecv(ops)]
        elif dist.get_rank() == 2:
            dist.all_reduce(torch.ones(8), group=group)

    text = report(world, work)
    assert "recv of 8 bytes from rank 2" in entry(text, 1)
    assert "all_reduce over ranks [1, 2]" in entry(text, 2)


def test_a_backward_that_hangs_shows_the_line_inside_it(world):
    class Wait(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            time.sleep(60)  # in backward
            return grad

    def work():
        Wait.apply(torch.ones(2, requires_grad=True)).sum().backward()

    assert "time.sleep(60)  # in backward" in entry(report(world, work), 0)


def test_a_helper_thread_of_the_program_is_shown_too(world):
    def work():
        import threading

        def helper():
            time.sleep(60)  # in the helper

        thread = threading.Thread(target=helper)
        thread.start()
        thread.join()  # in the program

    text = entry(report(world, work), 0)
    assert "thread.join()  # in the program" in text
    assert "another thread stood at" in text
    assert "time.sleep(60)  # in the helper" in text


def test_the_deadline_of_the_world_counts_unless_the_run_has_its_own():
    world = ProcessRunner(1, timeout=0.3)
    with pytest.raises(HungRank, match=r"after 0\.3 s"):
        world.run(time.sleep, (60,))
    assert world.run(time.sleep, (0.6,), timeout=30) == [None]
    assert world.run(time.sleep, (0.6,), timeout=float("inf")) == [None]
    world.close()


def test_starting_does_not_count_towards_the_deadline():
    world = ProcessRunner(2, timeout=0.2)
    for _ in range(2):
        world.close()
        assert world.run(int) == [0, 0]
    world.close()


def test_the_next_run_after_a_hang_works(world):
    report(world, lambda: time.sleep(60) if dist.get_rank() == 0 else dist.barrier())
    assert world.run(dist.get_rank) == [0, 1, 2]


def test_a_rank_that_does_not_read_its_call_cannot_hang_the_parent(world):
    import os
    import signal

    pids = world.run(os.getpid)
    os.kill(pids[1], signal.SIGSTOP)  # a stopped process neither reads nor answers
    start = time.monotonic()
    with pytest.raises(HungRank) as caught:
        world.run(len, (torch.zeros(4_000_000),), timeout=0.5)
    assert time.monotonic() - start < 5
    assert "rank 1 gave no sign" in str(caught.value)
    assert world.run(int) == [0, 0, 0]


def test_a_rank_that_floods_its_result_back_is_not_mistaken_for_a_hang(world):
    (first, *_) = world.run(lambda: b"x" * 50_000_000, timeout=30)
    assert len(first) == 50_000_000
