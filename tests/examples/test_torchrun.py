"""The examples as a user starts them: processes of torchrun that talk gloo over the loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import generate
import pytest
import train

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"

pytestmark = pytest.mark.processes


def torchrun(script: str, *given: str) -> str:
    """Run an example on two ranks without GPUs; give what it prints."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               "--local-addr=127.0.0.1", f"examples/{script}", *given]  # fmt: skip
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": LOOPBACK,
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_torchrun_trains_what_one_device_trains() -> None:
    said = torchrun("train.py", "--steps=2", "--tokens=29", "--dtype=float64", "--check")
    assert re.findall(r"^step (\d): loss \d\.\d{6}, gradient norm \d\.\d{6}$", said, re.M) == [
        "0",
        "1",
    ]
    assert "against one device: losses differ by" in said


@pytest.mark.slow
def test_torchrun_trains_data_parallel_too() -> None:
    said = torchrun("train.py", "--steps=2", "--cp=1", "--layout=striped", "--check")
    assert "against one device: losses differ by" in said


@pytest.mark.slow
def test_torchrun_generates_what_one_device_generates() -> None:
    said = torchrun("generate.py", "--prompt-tokens=13", "--new-tokens=6", "--check")
    assert "12 of 12 tokens are the same" in said


def test_a_script_that_is_started_without_torchrun_says_how() -> None:
    env = {name: value for name, value in os.environ.items() if name != "LOCAL_RANK"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / "train.py"],
        env={**env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "start it by torchrun: torchrun --standalone" in done.stderr


def test_every_command_of_the_readme_has_arguments_that_the_scripts_take() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"examples/(train|generate)\.py(.*)", "\n".join(blocks(text)))
    assert {script for script, _ in commands} == {"train", "generate"}
    for script, given in commands:
        {"train": train, "generate": generate}[script].arguments(given.split())


def blocks(text: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
