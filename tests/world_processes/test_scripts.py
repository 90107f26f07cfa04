from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.world_processes.observe import ROOT, Script

pytestmark = pytest.mark.processes

PLAIN = """
    import torch, torch.distributed as dist
    from ringlab.world.processes import ProcessRunner

    print("top of the script")

    class Note:
        def __init__(self, rank):
            self.rank = rank

    def work():
        notes = [None] * 2
        dist.all_gather_object(notes, Note(dist.get_rank()))
        return Note(sum(note.rank for note in notes))

    world = ProcessRunner(2)
    print([isinstance(note, Note) and note.rank for note in world.run(work)])
    world.run(lambda: 1 / 0)
"""


def test_a_script_needs_no_main_guard_and_runs_once(tmp_path: Path):
    said = Script(tmp_path, PLAIN).finish()
    assert said.splitlines()[:2] == ["top of the script", "[1, 1]"]
    assert said.count("top of the script") == 1
    assert 'script.py", line 18, in <lambda>\n    world.run(lambda: 1 / 0)' in said


@pytest.mark.slow
def test_a_program_from_standard_input_works_too():
    program = (
        "import torch.distributed as dist\n"
        "from ringlab.world.processes import ProcessRunner\n"
        "def work():\n"
        "    return dist.get_rank()\n"
        "print(ProcessRunner(2).run(work))\n"
    )
    done = subprocess.run(
        [sys.executable, "-"],
        input=program,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[0, 1]\n", "")


def test_importing_the_runner_starts_nothing_and_never_touches_cuda():
    program = (
        "import os, psutil, torch\n"
        "before = psutil.Process().num_fds(), len(psutil.Process().children())\n"
        "import ringlab.world.processes\n"
        "assert (psutil.Process().num_fds(), len(psutil.Process().children())) == before\n"
        "assert not torch.cuda.is_initialized()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, timeout=60)


def test_the_fork_server_has_one_thread_and_no_cuda(world):
    import psutil

    server = psutil.Process(world._generation.launcher.pid)
    assert server.num_threads() == 1

    def cuda_was_untouched():
        import torch

        return not torch.cuda.is_initialized()

    assert all(world.run(cuda_was_untouched))
