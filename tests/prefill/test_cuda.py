"""On GPUs: every rank against float64 on one device, by the error ratio of 16-bit partials."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ringlab import World, ZigZag
from tests import oracle
from tests.prefill.cases import Attend, Inputs, Step, every_method, inputs, step, whole

LIMIT = 1.5


def step_on_gpu(method: Attend, given: Inputs) -> Step:
    on_gpu = Inputs(*(x.cuda() for x in given))
    return Step(*(x.cpu() for x in step(method, on_gpu, ZigZag(), causal=True)))


def assert_near_one_device(parts: list[Step], given: Inputs) -> None:
    on_gpu: list[Tensor] = [x.cuda() for x in given]
    exact, single = oracle.attention(*given, causal=True), oracle.one_device(*on_gpu, causal=True)
    for name, found in whole(parts, ZigZag())._asdict().items():
        truth = getattr(exact, name)
        limit = LIMIT * oracle.error(getattr(single, name).cpu(), truth)
        assert oracle.error(found, truth) <= limit, name


def problem() -> Inputs:
    return inputs(700, heads=8, kv_heads=2, head_dim=64, dtype=torch.bfloat16)


@pytest.mark.cuda(count=1)
@every_method
def test_ranks_that_share_a_gpu_are_as_exact_as_one(method: Attend) -> None:
    with World(3, backend="nccl", share_gpu=True) as world:
        assert_near_one_device(world.run(step_on_gpu, method, problem()), problem())


@pytest.mark.nccl
@every_method
def test_a_gpu_a_rank_is_as_exact_as_one(method: Attend) -> None:
    with World(2, backend="nccl") as world:
        assert_near_one_device(world.run(step_on_gpu, method, problem()), problem())
