"""Python's collector of garbage begins less often while many ranks run, and as before after."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch.distributed as dist

from ringlab import World
from ringlab.world.errors import RankFailed
from ringlab.world.virtual.collector import PER_RANK


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("size", "before", "within"),
    [
        (100, (700, 10, 10), (100 * PER_RANK, 10, 10)),
        (2, (700, 10, 10), (700, 10, 10)),
        (100, (1_000_000, 5, 7), (1_000_000, 5, 7)),
        (100, (0, 10, 10), (0, 10, 10)),
    ],
    ids=["many ranks", "few ranks", "later already", "off"],
)
def test_it_begins_less_often_while_many_ranks_run(
    size: int, before: tuple[int, int, int], within: tuple[int, int, int]
) -> None:
    gc.set_threshold(*before)
    assert World(size).run(gc.get_threshold) == [within] * size
    assert gc.get_threshold() == before


def test_it_is_as_before_after_a_run_that_fails() -> None:
    def fails() -> None:
        dist.barrier()
        raise ValueError("no")

    with pytest.raises(RankFailed):
        World(100).run(fails)
    assert gc.get_threshold() == (700, 10, 10)


def test_what_the_program_chooses_remains() -> None:
    World(100).run(lambda: gc.set_threshold(1234, 5, 6))
    assert gc.get_threshold() == (1234, 5, 6)
