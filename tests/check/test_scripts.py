"""``ringlab check`` on whole scripts of other shapes than a ring, right and with one fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ringlab.commands import check

SCRIPTS = Path(__file__).with_name("scripts")

FAULTS = {
    "pipeline": "PeerLeft: rank 1 has returned, and will never do its part",
    "even_odd": "Deadlock: ranks wait for one another: 0 -> 1 -> 0",
    "tensor_parallel": "RankFailed: rank 3 failed: AssertionError: Tensor-likes are not close!",
    "experts": "all_to_all_single: input split sizes",
    "averaging": "MessageMismatch: the members of group [0, 1, 2, 3] do not make the same call",
    "ddp": "rank 1 waits for rank 0: all_reduce over ranks [0, 1, 2, 3] at ddp.py",
}
"""What is said about each script when it is started with ``--wrong``."""


def test_every_script_is_here():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == set(FAULTS)


@pytest.mark.parametrize("order", ["stream", "host"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_script_that_is_right_is_found_to_be(name, order, capsys):
    assert check.main([str(SCRIPTS / f"{name}.py"), "--order", order]) == 0, capsys.readouterr().out
    assert "nothing wrong was found" in capsys.readouterr().out


@pytest.mark.parametrize("name", FAULTS)
def test_its_fault_is_explained(name, capsys):
    assert check.main([str(SCRIPTS / f"{name}.py"), "--wrong"]) == 1
    said = capsys.readouterr().out
    assert FAULTS[name] in said
    assert f"{name}.py" in said.split(FAULTS[name][:20])[1]  # with a line of the script


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FAULTS)
def test_torchrun_agrees_that_it_is_right(name):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*torchrun, str(SCRIPTS / f"{name}.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
