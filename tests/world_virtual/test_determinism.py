"""Two runs of one program are equal to the last bit; random numbers are each rank's own."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest
import torch
import torch.distributed as dist

from ringlab.world import World, WorldError, mersenne
from tests.world_virtual.verdicts import ORDERS


def noisy(steps):
    """Random sizes, random peers, sums in fp32: everything that could differ between runs."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.randn(50)
    for _ in range(steps):
        dist.all_reduce(x)
        x = x / x.norm() + torch.randn(50) * random.random() + float(np.random.rand())
        y = torch.empty(50)
        ops = [
            dist.P2POp(dist.isend, x, (rank + 1) % size),
            dist.P2POp(dist.irecv, y, (rank - 1) % size),
        ]
        works = dist.batch_isend_irecv(ops)
        if random.random() < 0.5:
            works.reverse()
        for work in works:
            while random.random() < 0.3 and not work.is_completed():
                pass
            work.wait()
        x = x + y
    return x


@pytest.mark.parametrize("order", ORDERS)
def test_two_runs_give_equal_results_and_equal_timelines(order):
    first, second = World(4, order=order), World(4, order=order)
    one, two = first.run(noisy, 12), second.run(noisy, 12)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert first.timeline == second.timeline
    assert len(first.timeline) > 100
    third = first.run(noisy, 12)
    assert all(torch.equal(a, b) for a, b in zip(one, third, strict=True))


def often_wrong(seed):
    dice = random.Random(seed)
    rank, size = dist.get_rank(), dist.get_world_size()
    works = []
    for _ in range(6):
        one, two = dice.sample(range(size), 2)
        if rank == one:
            works.append(dist.isend(torch.ones(dice.choice((3, 3, 3, 4))), two))
        if rank == two:
            works.append(dist.irecv(torch.ones(3), one))
        if dice.random() < 0.4 and works:
            works.pop(0).wait()


def test_two_runs_give_the_same_report():
    kinds = set()
    for seed in range(40):
        texts = []
        for _ in range(2):
            with pytest.raises(WorldError) as caught:
                World(4).run(often_wrong, seed)
            texts.append(str(caught.value))
            kinds.add(type(caught.value).__name__)
        assert texts[0] == texts[1]
    assert len(kinds) >= 3, kinds


def draw_once():
    return torch.rand(1).item(), random.random(), np.random.rand(), random.gauss(0, 1)


def draw(turns):
    numbers = []
    for _ in range(turns):
        numbers.append(
            (torch.rand(1).item(), random.random(), np.random.rand(), random.gauss(0, 1))
        )
        dist.barrier()
    return numbers


def alone(seed, turns):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    return [draw_once() for _ in range(turns)]


@pytest.mark.parametrize("fast", [True, False])
def test_each_rank_draws_as_if_it_were_alone_and_seeded_with_seed_plus_rank(fast, monkeypatch):
    monkeypatch.setattr(mersenne, "_FAST", fast and mersenne._FAST)
    results = World(3, seed=40).run(draw, 5)
    state = torch.get_rng_state(), random.getstate(), np.random.get_state()
    assert results == [alone(40 + r, 5) for r in range(3)]
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    np.random.set_state(state[2])


def test_this_python_keeps_the_state_of_random_where_it_is_copied_from():
    assert mersenne._FAST


def fail_after_drawing():
    draw(2)
    raise ValueError


@pytest.mark.parametrize("program", [draw, fail_after_drawing])
def test_the_callers_random_numbers_go_on_as_if_nothing_had_run(program):
    expected = alone(7, 4)
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    got = []
    for _ in range(4):
        got.append(draw_once())
        with contextlib.suppress(WorldError):
            World(3).run(program, *([3] if program is draw else []))
    assert got == expected


def reseeds():
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    dist.barrier()
    return torch.rand(1).item(), np.random.rand(), random.random()


def test_a_rank_may_seed_for_itself():
    results = World(2).run(reseeds)
    assert results[0] == results[1]


def test_seeds_may_be_large():
    assert World(2, seed=2**40).run(lambda: np.random.rand())[0] != 0


def reads_the_timeline():
    rank = dist.get_rank()
    x = torch.zeros(4)
    if rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    dist.all_reduce(x)


def test_the_timeline_says_what_was_sent_received_and_waited_for_and_where():
    world = World(2)
    world.run(reads_the_timeline)
    _, send, wait, reduce_, wait_2 = world.timeline.of(0)
    assert (send.kind, send.peer, send.bytes_out, send.bytes_in) == ("send", 1, 16, 0)
    assert (send.shape, send.dtype, send.group) == ((4,), "float32", (0, 1))
    assert send.site.startswith("test_determinism.py:")
    assert send.site.endswith(" in reads_the_timeline")
    assert (wait.kind, wait.launch, wait.site) == ("wait", send.launch, send.site)
    assert (reduce_.kind, reduce_.name, reduce_.launch) == ("collective", "all_reduce", 1)
    assert reduce_.bytes_out == reduce_.bytes_in == 16
    assert wait_2.launch == 1
    assert world.timeline.of(1, "recv")[0].bytes_in == 16


def stops_halfway():
    dist.barrier()
    raise ValueError


def test_the_timeline_of_a_run_that_failed_holds_what_happened_until_then():
    world = World(2)
    with pytest.raises(WorldError):
        world.run(stops_halfway)
    assert world.timeline.count("collective") == 2


def creates_groups():
    dist.new_group([0, 1])
    dist.barrier()


def test_creating_a_group_is_not_traffic():
    world = World(2)
    world.run(creates_groups)
    assert {e.name for e in world.timeline} == {"barrier"}
