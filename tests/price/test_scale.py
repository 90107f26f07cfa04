"""Many ranks: executed, priced and repeated over the layers of a model."""

from __future__ import annotations

import time

import pytest
import torch

from ringlab.machine import Machine
from ringlab.memory import MODELS
from ringlab.price import price, price_layers
from ringlab.simulation import LAYOUTS, Task
from ringlab.simulation.programs import record_prefill
from ringlab.timeline import makespan

TASK = Task(MODELS["Llama 3.1 70B"], 1 << 20)


@pytest.mark.slow
def test_256_ranks_are_executed_and_priced():
    """Usual: 30 s of CPU, of which pricing takes one."""
    began = time.process_time()
    ring = record_prefill(TASK.heads, TASK.dtype, 256, TASK.tokens, "ring", LAYOUTS["zigzag"])
    priced = price(ring, "32x8 h100-ib")
    assert time.process_time() - began < 5 * 45
    assert ring.count("send") == 256 * 255
    assert 0 < makespan(priced) < 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layer_that_is_priced_often_costs_little(layout):
    """Usual: 0.1 s of CPU for 80 layers of 32 ranks, whether they repeat exactly or drift."""
    ring = record_prefill(TASK.heads, torch.bfloat16, 32, 1 << 16, "ring", LAYOUTS[layout])
    began = time.process_time()
    layers = price_layers(ring, Machine.named("4x8 h100-ib"), 80)
    assert time.process_time() - began < 5 * 1.0
    assert layers.seconds > 40 * layers.period > 0
