"""Random programs that run clean here finish on real ranks, with the same results and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch.distributed as dist
from hypothesis import HealthCheck, given, settings

from ringlab import World
from ringlab.world import HungRank, WorldError
from tests.world_virtual.lists import play
from tests.world_virtual.spmd import Program, lone_send
from tests.world_virtual.spmd_drawn import programs
from tests.world_virtual.test_lists import drawn
from tests.world_virtual.verdicts import ORDERS, verdict

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")

shared_world = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def gloo() -> Iterator[World]:
    with World(4, backend="gloo", threads=1) as world:
        world.run(dist.barrier)
        yield world


def compare(gloo: World, program: Program) -> str:
    """Run a program here, and if it is clean on gloo; return what the virtual world said."""
    here = World(4, order="host")
    try:
        results = here.run(program)
    except WorldError as error:
        return type(error).__name__
    assert gloo.run(program, timeout=20) == results
    assert gloo.timeline.communication() == here.timeline.communication()
    return "ok"


@pytest.mark.processes
@settings(shared_world, max_examples=40)
@given(program=programs(swaps=0))
def test_programs_that_are_clean_here_finish_on_gloo_with_the_same_results_and_bytes(gloo, program):
    assert compare(gloo, program) == "ok"


@settings(max_examples=40)
@given(program=programs(swaps=0))
def test_programs_that_all_ranks_make_in_one_order_are_clean_under_both_rules(program):
    stream, host = (World(4, order=order) for order in ORDERS)
    assert stream.run(program) == host.run(program)
    assert stream.timeline.communication() == host.timeline.communication()


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(shared_world, max_examples=400)
@given(program=programs(swaps=0))
def test_many_programs_finish_on_gloo_with_the_same_results_and_bytes(gloo, program):
    assert compare(gloo, program) == "ok"


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_programs_with_swapped_steps_finish_on_gloo_where_they_are_clean_here(gloo):
    seen: Counter[str] = Counter()

    @settings(shared_world, max_examples=200, database=None)
    @given(program=programs(swaps=3))
    def compared(program):
        seen[compare(gloo, program)] += 1

    compared()
    assert min(seen["ok"], sum(seen.values()) - seen["ok"]) >= 5, seen


# ---- the converse ------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_gloo_does_not_buffer_even_the_smallest_message(size):
    assert verdict(lone_send, 2, size, order="host") == "PeerLeft"
    with World(2, backend="gloo", threads=1) as world:
        world.run(dist.barrier)
        with pytest.raises(HungRank, match="rank 0 of 2 had not returned"):
            world.run(lone_send, size, timeout=0.5)


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_drawn_programs_that_deadlock_here_hang_on_gloo():
    hung = 0
    with World(4, backend="gloo", threads=1) as world:

        @settings(max_examples=60, database=None)
        @given(lists=drawn((4,), 4, wild=False))
        def hangs(lists):
            nonlocal hung
            if hung < 25 and verdict(play, 4, lists, order="host") in ("Deadlock", "PeerLeft"):
                hung += 1
                world.run(dist.barrier)
                with pytest.raises(HungRank):
                    world.run(play, lists, timeout=0.5)

        hangs()
    assert hung >= 10
