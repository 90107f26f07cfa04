"""Making a world, and what it refuses to be made with."""

from __future__ import annotations

import re

import pytest
import torch.distributed as dist

import ringlab
from ringlab.world import World


def test_results_come_in_rank_order_and_a_world_is_used_again_and_again():
    with World(3) as world:
        assert world.run(lambda a, *, b: (dist.get_rank(), a, b), 1, b=2) == [
            (0, 1, 2),
            (1, 1, 2),
            (2, 1, 2),
        ]
        assert world.run(dist.get_world_size) == [3, 3, 3]
    assert world.run(dist.get_rank) == [0, 1, 2]


def test_it_is_the_packages_world():
    assert ringlab.World is World


def test_its_name_says_what_it_is():
    assert repr(World(3)) == "World(3, backend='virtual')"


def test_the_timeline_is_that_of_the_last_run():
    world = World(2)
    assert len(world.timeline) == 0
    world.run(dist.barrier)
    assert world.timeline.count("collective") == 2
    world.run(dist.get_rank)
    assert len(world.timeline) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": 0}, "at least 1 rank; size is 0"),
        ({"size": -2}, "size is -2"),
        ({"size": 2.0}, "size is 2.0"),
        ({"size": True}, "size is True"),
        ({"size": 2, "backend": "mpi"}, "choose 'virtual', 'gloo' or 'nccl'"),
        ({"size": 2, "order": "gloo"}, "choose 'stream' (NCCL's rules) or 'host' (gloo's)"),
        ({"size": 2, "order": "host", "backend": "gloo"}, "the rules of the virtual world"),
        ({"size": 2, "timeout": 0}, "timeout is 0"),
        ({"size": 2, "timeout": float("nan")}, "timeout is nan"),
        ({"size": 2, "threads": 2}, "for the process worlds only"),
        ({"size": 2, "share_gpu": True}, "share_gpu is for backend 'nccl'"),
    ],
)
def test_what_cannot_be_is_refused_in_words(options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        World(**options)


def test_a_deadline_of_one_call_must_be_positive():
    with pytest.raises(ValueError, match="timeout is -1"):
        World(2).run(dist.get_rank, timeout=-1)


def test_a_rank_outside_the_world_is_not_in_its_timeline():
    with pytest.raises(ValueError, match="ranks are 0 to 1"):
        World(2).timeline.of(2)
