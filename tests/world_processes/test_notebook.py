from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.world_processes.kernel import Kernel
from tests.world_processes.observe import alive, descendants, eventually

pytestmark = [pytest.mark.processes, pytest.mark.notebook]

SETUP = """
import os, time
import torch
import torch.distributed as dist
from dataclasses import dataclass
from ringlab.world.processes import ProcessRunner
world = ProcessRunner(3)
world.run(int)
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    assert not kernel.run(SETUP).error
    yield kernel
    kernel.close()


def test_functions_and_classes_of_cells_run_on_ranks_that_live_across_cells(kernel):
    kernel.run("@dataclass\nclass Shard:\n    rank: int\n    total: float")
    kernel.run("scale = 10.0")
    kernel.run("""
        def work(x):
            total = x * scale * dist.get_rank()
            dist.all_reduce(total)
            return Shard(dist.get_rank(), total.item())
    """)
    kernel.run("first = world.run(os.getpid)")
    said = kernel.run("""
        shards = world.run(work, (torch.ones(()),))
        print(shards, isinstance(shards[0], Shard), world.run(os.getpid) == first)
    """)
    assert said.text == (
        "[Shard(rank=0, total=30.0), Shard(rank=1, total=30.0), Shard(rank=2, total=30.0)] "
        "True True\n"
    )


def test_classes_of_cells_can_travel_between_ranks(kernel):
    said = kernel.run("""
        @dataclass
        class Note:
            rank: int

        def gather():
            notes = [None] * 3
            dist.all_gather_object(notes, Note(dist.get_rank()))
            return notes

        world.run(gather)[1] == [Note(0), Note(1), Note(2)]
    """)
    assert said.text == "True"


def test_an_error_in_a_cell_shows_its_source_line_and_nothing_else(kernel):
    said = kernel.run("""
        def broken():
            if dist.get_rank() == 1:
                raise ValueError("wrong")  # in the cell
            dist.barrier()

        world.run(broken)
    """)
    assert said.error == "RankFailed"
    assert said.traceback.splitlines()[:5] == [
        "RankFailed: rank 1 failed: ValueError: wrong",
        "",
        "Traceback of rank 1 (most recent call last):",
        "  cell line 3, in broken",
        '    raise ValueError("wrong")  # in the cell',
    ]
    assert "ipykernel" not in said.traceback
    assert "pool.py" not in said.traceback


def test_a_hang_in_a_cell_shows_its_source_lines_and_is_the_same_every_time(kernel):
    cell = """
        def stuck():
            print("rank", dist.get_rank())
            dist.recv(torch.zeros(2), src=(dist.get_rank() + 1) % 3)

        world.run(stuck, timeout=0.5)
    """
    one, two = kernel.run(cell), kernel.run(cell)
    assert one.error == "HungRank"
    assert "rank 2 stood at cell line 3 in stuck: `dist.recv(" in one.traceback
    assert "not finished: recv of 8 bytes from rank 0, issued there" in one.traceback
    assert one.text == "".join(f"[rank {r}] rank {r}\n" for r in range(3))
    assert (one.text, one.traceback) == (two.text, two.traceback)


def test_output_of_ranks_is_below_the_cell_that_ran_them_while_it_runs(kernel):
    said = kernel.run("""
        def speak():
            os.system("echo from a child")
            print("first")
            time.sleep(1.0)
            print("last")
        world.run(speak)
        None
    """)
    lines = ["from a child", "first", "last"]
    assert said.text == "".join(f"[rank {r}] {line}\n" for r in range(3) for line in lines)
    assert said.times["[rank 0] last"] - said.times["[rank 0] first"] > 0.5


def test_the_stop_button_ends_a_hang_with_a_report_and_the_next_cell_works(kernel):
    asked = []

    def stop() -> None:
        asked.append(time.monotonic())
        kernel.interrupt()

    said = kernel.run(
        """
        def endless():
            if dist.get_rank() == 1:
                time.sleep(2.0)  # by then the others stand in the barrier
                print("here we go")
                while True:
                    pass
            dist.barrier()
        world.run(endless)
        """,
        when="here we go",
        act=stop,
    )
    assert time.monotonic() - asked[0] < 5
    assert said.error == "RunInterrupted"
    assert said.traceback.startswith("KeyboardInterrupt: ")
    assert "rank 0 stood at cell line 7 in endless: `dist.barrier()`" in said.traceback
    assert "rank 1 stood at cell line" in said.traceback
    assert kernel.run("world.run(dist.get_rank)").text == "[0, 1, 2]"


def test_the_stop_button_between_runs_does_not_touch_the_ranks(kernel):
    kernel.run("before = world.run(os.getpid)")
    said = kernel.run("print('idle'); time.sleep(60)", when="idle", act=kernel.interrupt)
    assert said.error == "KeyboardInterrupt"
    assert kernel.run("world.run(os.getpid) == before").text == "True"


@pytest.mark.slow
def test_a_restarted_kernel_leaves_no_rank_and_can_start_others(kernel):
    below = descendants(kernel.pid)
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=60)
    assert eventually(lambda: not alive(below), 3.0)
    assert not kernel.run(SETUP).error


def test_a_killed_kernel_leaves_no_rank(kernel):
    below: list[int] = []

    def kill() -> None:
        below.extend(descendants(kernel.pid))
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.client.stop_channels()

    with pytest.raises(Exception):  # noqa: B017, PT011  whatever the client makes of it
        kernel.run("world.run(lambda: (print('busy'), time.sleep(60)))", "busy", kill)
    assert len(below) >= 4
    assert eventually(lambda: not alive(below), 3.0)
