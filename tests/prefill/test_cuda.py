"""Real ranks against float64 and one device, by the error ratio of 16-bit; also on GPUs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from ringlab import World, ZigZag
from tests import oracle
from tests.gpu.places import Ranks, every_place
from tests.prefill.cases import Attend, Inputs, Step, every_method, inputs, step, whole

LIMIT = 1.5


@pytest.fixture(scope="module")
def world(place: Ranks) -> Iterator[World]:
    with place.start() as world:
        yield world


def step_on(method: Attend, given: Inputs) -> Step:
    """One rank's step: what it is given has arrived on its device."""
    return Step(*(x.cpu() for x in step(method, given, ZigZag(), causal=True)))


@every_place
@every_method
def test_ranks_are_as_exact_as_one_device(world: World, place: Ranks, method: Attend) -> None:
    given = inputs(700, heads=8, kv_heads=2, head_dim=64, dtype=torch.bfloat16)
    exact = oracle.attention(*given, causal=True)
    single = oracle.one_device(*(x.to(place.device) for x in given), causal=True)
    found = whole(world.run(step_on, method, given), ZigZag())
    for name, tensor in found._asdict().items():
        truth = getattr(exact, name)
        limit = LIMIT * oracle.error(getattr(single, name).cpu(), truth)
        assert oracle.error(tensor, truth) <= limit, name
