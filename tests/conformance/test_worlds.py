"""One program, three worlds: the same bytes, edges and order of operations on every rank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringlab import World
from tests.conformance.programs import PROGRAMS, Program, communication
from tests.gpu.places import ON_GPUS, Ranks

SIZE = 3

every_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


@pytest.fixture(scope="module")
def gloo() -> Iterator[World]:
    with World(SIZE, backend="gloo", threads=1) as world:
        yield world


@every_program
def test_the_two_rules_of_the_virtual_world_record_the_same(program: Program) -> None:
    stream, host = (
        communication(World(SIZE, order=order), program) for order in ("stream", "host")
    )
    assert stream == host
    assert len(stream) > 0


@pytest.mark.processes
@every_program
def test_gloo_records_what_the_virtual_world_records(gloo: World, program: Program) -> None:
    real, virtual = communication(gloo, program), communication(World(SIZE), program)
    assert real.edges() == virtual.edges()
    for rank in range(SIZE):
        assert real.hops(rank) == virtual.hops(rank)
        assert real.of(rank) == virtual.of(rank)
    assert real == virtual


@pytest.mark.parametrize("place", ON_GPUS)
def test_ranks_on_gpus_record_what_the_virtual_world_records(place: Ranks) -> None:
    with place.start() as world:
        for name, program in PROGRAMS.items():
            real = communication(world, program)
            assert real == communication(World(world.size), program), name
