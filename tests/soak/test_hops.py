"""Hundreds of hops in which somebody is always late: nothing is lost, doubled or swapped."""

from __future__ import annotations

import pytest

from ringlab import World
from tests.soak.programs import assert_ring_is_right, blocks, pass_around, ring, ring_problem

WORLD_SIZES = (2, 3, 5, 8)
SOME = [pytest.param(3, 60, id="3-60")]
ALL = [pytest.param(size, 500, id=f"{size}-500", marks=pytest.mark.slow) for size in WORLD_SIZES]
BACKENDS = ["virtual", pytest.param("gloo", marks=pytest.mark.processes)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("world_size", "hops"), SOME + ALL)
def test_every_hop_of_a_ring_with_pauses_arrives(backend: str, world_size: int, hops: int) -> None:
    with World(world_size, backend=backend) as world:
        found = world.run(pass_around, hops, world_size)
    assert found == blocks(world_size, hops)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("world_size", "hops"), SOME + ALL)
def test_every_call_of_the_ring_with_pauses_is_right(
    backend: str, world_size: int, hops: int
) -> None:
    problem = ring_problem(world_size)
    calls = -(-hops // (2 * (world_size - 1)))  # forward and backward make W - 1 hops each
    with World(world_size, backend=backend) as world:
        assert_ring_is_right(problem, world.run(ring, problem, calls, world_size))


def test_a_block_out_of_order_would_be_noticed() -> None:
    assert len({tuple(block) for hops in (59, 60) for block in blocks(3, hops)}) == 6
