"""What it costs to begin: importing ringlab, and the first run."""

from __future__ import annotations

import subprocess
import sys

EVERY_NAME = """
import time, torch
start = time.process_time()
import ringlab
for name in ringlab.__all__:
    getattr(ringlab, name)
print(time.process_time() - start)
"""

FIRST_RUN = """
import sys, torch
from ringlab import World, ZigZag, ring_attention
from ringlab.bench.parts import Parts
from ringlab.meter import PeakBytes

def program():
    x = torch.randn(1, 2, 4, 8, requires_grad=True)
    with PeakBytes(), Parts():
        ring_attention(x, x, x, layout=ZigZag(), causal=True).backward(torch.ones_like(x))

with World(2) as world:
    world.run(program)
print("torch._dynamo" in sys.modules)
"""


def in_a_fresh_process(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_all_public_names_together_cost_little_beside_torch() -> None:
    assert float(in_a_fresh_process(EVERY_NAME)) < 1.5  # usually under 0.2 seconds


def test_a_first_run_does_not_load_the_compiler_which_takes_seconds() -> None:
    assert in_a_fresh_process(FIRST_RUN) == "False"
