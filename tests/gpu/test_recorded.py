"""What a rank records with its tensors on a pretended GPU, and with a default device set."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ringlab import World
from tests.conformance.programs import communication
from tests.gpu.pretended_rank import PROGRAMS, RANK, SIZE, calls, told

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.gpu.pretended_rank"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_edges_and_order_are_those_of_the_virtual_world(
    name: str, recorded: dict[str, Any]
) -> None:
    world = World(SIZE)
    world.run(PROGRAMS[name], "cpu")
    expected = told([event for event in world.timeline if event.rank == RANK])
    assert recorded[name] == expected
    assert expected


def under_modes() -> None:
    """A rank on a GPU sets a default device, and its program may set more: each is a mode."""
    with torch.device("cpu"), torch.device("cpu"), torch.device("cpu"):
        calls("cpu")


@pytest.mark.processes
def test_a_batch_stays_one_launch_under_modes_that_torch_puts_around_its_calls() -> None:
    with World(3, backend="gloo", threads=1) as world:
        real = communication(world, under_modes)
    assert real == communication(World(3), under_modes)
    batch = [event.launch for event in real if event.kind in ("send", "recv") and event.rank == 0]
    assert len(batch) == 2
    assert len(set(batch)) == 1
