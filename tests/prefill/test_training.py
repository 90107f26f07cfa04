"""Training a small model over shards is training it on one device."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import World, ZigZag
from ringlab.prefill import all_gather_attention, ring_attention
from tests.prefill.cases import Attend
from tests.prefill.models import Log, assert_same_gradients, data, model, train

LENGTH, STEPS = 13, 5


def train_a_shard(method: Attend, x: Tensor, target: Tensor) -> Log:
    place = dist.get_rank(), dist.get_world_size()
    mine = (ZigZag().shard(t, *place) for t in (x, target))
    return train(model(method), *mine, scale=1 / LENGTH, steps=STEPS, summed=True)


@pytest.mark.parametrize(
    ("method", "size"),
    [(ring_attention, 1), (ring_attention, 2), (ring_attention, 4), (all_gather_attention, 4)],
)
def test_report_a4_e8_losses_and_gradients_of_five_steps_do_not_depend_on_the_ranks(
    method: Attend, size: int
) -> None:
    x, target = data(LENGTH)
    expected = train(model(None), x, target, scale=1 / LENGTH, steps=STEPS)
    assert expected.losses[-1] < 0.9 * expected.losses[0]
    for found in World(size).run(train_a_shard, method, x, target):
        torch.testing.assert_close(found.losses, expected.losses, rtol=1e-12, atol=1e-12)
        assert_same_gradients(found, expected)
