from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
import torch.distributed as dist

from ringlab.world.processes import RunInterrupted
from ringlab.world.processes.shield import shielded
from tests.world_processes.observe import descendants

pytestmark = pytest.mark.processes


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Send this process what Ctrl-C sends."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_an_interrupt_ends_the_run_with_a_report_and_the_next_run_works(world):
    def work():
        if dist.get_rank() != 2:
            dist.barrier()  # where they stand

    start = time.monotonic()
    with interrupt_after(0.5), pytest.raises(KeyboardInterrupt) as caught:
        world.run(work)
    assert time.monotonic() - start < 4
    assert isinstance(caught.value, RunInterrupted)
    text = str(caught.value)
    assert text.count("dist.barrier()  # where they stand") == 2
    assert "rank 2 had returned" in text
    assert world.run(dist.get_rank) == [0, 1, 2]


def test_an_interrupt_that_reaches_the_ranks_too_does_not_disturb_them(world):
    def work():
        time.sleep(0.5)
        return dist.get_rank()

    for pid in world.pids:
        threading.Timer(0.2, os.kill, (pid, signal.SIGINT)).start()
    assert world.run(work) == [0, 1, 2]


def test_a_shielded_step_is_finished_before_the_interrupt_takes_effect():
    done = []
    with pytest.raises(KeyboardInterrupt), shielded():  # noqa: PT012  both are the subject
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        done.append("all of it")
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_shield_in_another_thread_changes_nothing():
    def work():
        with shielded():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_an_interrupt_at_any_moment_leaves_nothing_behind_and_a_world_that_works(world):
    world.close()
    me = psutil.Process()
    before = me.num_fds(), len(descendants(me.pid))
    interrupted = 0
    for step in range(12):
        try:
            with interrupt_after(0.03 * step):
                world.run(time.sleep, (0.1,))
                world.close()
                time.sleep(0.5)
        except KeyboardInterrupt:
            interrupted += 1
        world.close()
        assert (me.num_fds(), len(descendants(me.pid))) == before, step
    assert interrupted == 12
    assert world.run(dist.get_rank) == [0, 1, 2]
