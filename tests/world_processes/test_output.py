from __future__ import annotations

import ctypes
import io
import os
import subprocess
import sys
import threading
import time
import warnings

import pytest
import torch.distributed as dist

from ringlab.world.errors import HungRank, RankFailed
from ringlab.world.processes import ProcessRunner

pytestmark = pytest.mark.processes


def test_whatever_a_rank_writes_comes_labelled_and_in_rank_order(world, capsys):
    def speak():
        rank = dist.get_rank()
        time.sleep(0.05 * (2 - rank))  # the last rank speaks first
        print("print", rank)
        sys.stderr.write("stderr\n")
        os.write(1, b"descriptor\n")
        ctypes.CDLL(None).puts(b"C")
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)
        subprocess.run(["echo", "child"], check=True)
        print("no newline", end="")

    world.run(speak)
    lines = ["print {r}", "stderr", "descriptor", "C", "child", "no newline"]
    expected = "".join(f"[rank {r}] {line.format(r=r)}\n" for r in range(3) for line in lines)
    assert capsys.readouterr().out == expected
    assert world.output[1] == "print 1\nstderr\ndescriptor\nC\nchild\nno newline\n"


def test_what_c_code_has_buffered_comes_with_the_run_that_wrote_it(world, capsys):
    def speak():
        libc = ctypes.CDLL(None)
        name = "__stdoutp" if sys.platform == "darwin" else "stdout"
        fully = 0  # _IOFBF: as C does for a pipe, unless PYTHONUNBUFFERED is set
        sys.kept = buffer = ctypes.create_string_buffer(4096)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, name), buffer, fully, ctypes.c_size_t(4096))
        libc.printf(b"from C\n")

    world.run(speak)
    world.close()
    assert capsys.readouterr().out == "".join(f"[rank {r}] from C\n" for r in range(3))


class Clock(io.StringIO):
    """Remembers when each line was written."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[str, float] = {}

    def write(self, text: str) -> int:
        self.times.update(dict.fromkeys(text.splitlines(), time.monotonic()))
        return len(text)


@pytest.mark.parametrize(
    ("show", "early"),
    [("ordered", {"[rank 0] first"}), ("live", {"[rank 0] first", "[rank 1] first"})],
)
def test_lines_appear_while_the_run_goes_on(show, early):
    clock = Clock()
    world = ProcessRunner(2, stream=clock, show=show)

    def speak():
        print("first")
        dist.barrier()
        time.sleep(1.0)
        print("last")

    world.run(speak)
    world.close()
    end = clock.times["[rank 1] last"]
    assert {line for line, when in clock.times.items() if end - when > 0.5} == early


def test_output_does_not_leak_into_the_next_run(world, capsys):
    world.run(print, ("old",))
    capsys.readouterr()
    world.run(print, ("new",))
    assert world.output == ["new\n"] * 3
    assert capsys.readouterr().out == "".join(f"[rank {r}] new\n" for r in range(3))


def test_what_ranks_said_before_a_failure_is_shown(world, capsys):
    def work():
        print("before", flush=True)
        dist.barrier()
        if dist.get_rank() == 1:
            os._exit(1)
        dist.barrier()

    with pytest.raises(RankFailed):
        world.run(work)
    assert capsys.readouterr().out == "".join(f"[rank {r}] before\n" for r in range(3))


def test_a_rank_that_prints_for_ever_meets_its_deadline_and_a_limit(world, capsys):
    def flood():
        while True:
            print("x" * 1000)

    with pytest.raises(HungRank):
        world.run(flood, timeout=1)
    assert len(capsys.readouterr().out) < 3 * 1.5 * 2**20


def test_more_output_than_a_pipe_holds_blocks_nobody(world, capsys):
    world.run(lambda: print("y" * 500_000))
    assert len(capsys.readouterr().out) == 3 * (500_000 + len("[rank 0] \n"))


def test_a_thread_that_prints_for_ever_does_not_keep_the_run_from_ending(world, capsys):
    def work():
        def chatter():
            while True:
                os.write(1, b"z" * 65_536)

        threading.Thread(target=chatter, daemon=True).start()
        time.sleep(0.1)
        return dist.get_rank()

    assert world.run(work, timeout=10) == [0, 1, 2]
    world.close()


def test_warnings_of_a_rank_reach_the_reader(world, capsys):
    world.run(lambda: warnings.warn("mind this", stacklevel=1))
    assert capsys.readouterr().out.count("UserWarning: mind this") == 3


def test_a_rank_has_nothing_to_read(world):
    with pytest.raises(RankFailed, match="EOFError"):
        world.run(input)
