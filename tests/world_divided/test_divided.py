"""Ranks of the virtual world over several processes: the same as in one, or done in one."""

from __future__ import annotations

import os
import threading
from itertools import groupby

import psutil
import pytest

from ringlab import Contiguous, Striped, World, ZigZag
from ringlab.timeline import makespan
from ringlab.world.divided import office
from ringlab.world.divided.runner import shares
from ringlab.world.errors import Deadlock, MessageMismatch, RankFailed
from tests.world_divided import programs

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = {child.pid for child in psutil.Process().children()}
    yield
    assert {child.pid for child in psutil.Process().children()} <= before
    assert not [t for t in threading.enumerate() if t.name.startswith("ringlab-rank")]


def by_rank(world):
    events = sorted(world.timeline, key=lambda event: event.rank)  # stable
    return {rank: list(own) for rank, own in groupby(events, key=lambda event: event.rank)}


def same_in(processes, program, *args, size=8, machine="2x8 h100-ib", **how):
    """Run a program in one process and in several, and compare all they leave behind."""
    one, several = World(size, **how), World(size, processes=processes, **how)
    alone, divided = one.run(program, *args), several.run(program, *args)
    assert by_rank(several) == by_rank(one)
    assert several.timeline.world_size == size
    if machine:
        assert makespan(several.price(machine)) == makespan(one.price(machine))
    return alone, divided


def test_a_ring_leaves_the_same_events_results_and_price_in_three_processes():
    alone, divided = same_in(3, programs.ring, ZigZag(), 1000, True, True)
    assert divided == alone, "shapes, ranks and the ranks' random numbers"


@pytest.mark.slow
@pytest.mark.parametrize("layout", [Contiguous(), ZigZag(), Striped()], ids=repr)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("size", "processes"), [(2, 2), (5, 2), (16, 4), (70, 2)])
def test_every_ring_leaves_the_same_events_in_any_number_of_processes(
    layout, causal, size, processes
):
    args = layout, 40 * size - 1, causal, size < 70
    alone, divided = same_in(processes, programs.ring, *args, size=size, machine="16x8 h100-ib")
    assert divided == alone


def test_gloos_rules_hold_between_processes():
    # a price knows nothing of tags: it goes by NCCL's rules
    alone, divided = same_in(2, programs.tagged, size=4, machine=None, order="host")
    assert set(alone) == {os.getpid()}
    assert len(set(divided)) == 2
    assert os.getpid() not in divided


def test_thousands_of_messages_between_two_processes_hold_up_neither():
    size = 48
    assert World(size, processes=2).run(programs.everybody_to_everybody) == [2 * (size - 1)] * size


UNDIVIDABLE = [
    (programs.collective, "stream", "a collective, all_reduce", [4.0] * 4),
    (programs.with_data, "stream", "holds data", [3.0, 0.0, 1.0, 2.0]),
    (programs.from_anybody, "host", "a receive from any rank", [True] * 4),
    (programs.asking, "host", "asking whether an operation is done", [True] * 4),
]


@pytest.mark.parametrize(
    ("program", "order", "reason", "results"),
    [
        pytest.param(*case, marks=() if number < 2 else pytest.mark.slow, id=case[0].__name__)
        for number, case in enumerate(UNDIVIDABLE)
    ],
)
def test_what_depends_on_all_ranks_is_done_in_one_process_with_a_warning(
    program, order, reason, results
):
    world = World(4, processes=2, order=order)
    with pytest.warns(UserWarning, match=reason) as caught:
        assert world.run(program) == results
    assert caught[0].filename == __file__
    assert len(by_rank(world)) == 4


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (programs.all_receive, Deadlock),
        pytest.param(programs.unequal, MessageMismatch, marks=pytest.mark.slow),
        pytest.param(programs.raising, RankFailed, marks=pytest.mark.slow),
    ],
)
def test_a_wrong_program_is_reported_as_in_one_process(program, error):
    messages = []
    for processes in (1, 2):
        with pytest.raises(error) as caught:
            World(4, processes=processes).run(program)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.slow
def test_a_process_that_ends_costs_time_and_nothing_else():
    with pytest.warns(UserWarning, match="the process of 2 ranks, 2 among them, ended by itself"):
        assert World(4, processes=2).run(programs.ending, os.getpid()) == [True] * 4


@pytest.mark.slow
def test_an_interrupt_ends_the_parts(monkeypatch):
    def interrupted(_links):
        raise KeyboardInterrupt

    monkeypatch.setattr(office, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        World(4, processes=2).run(programs.tagged)


def test_a_program_that_cannot_be_sent_runs_here():
    lock = threading.Lock()

    def program():
        with lock:
            return True

    with pytest.warns(UserWarning, match="cannot be sent to another process"):
        assert World(4, processes=2).run(program) == [True] * 4


def test_a_world_inside_a_rank_is_not_divided():
    def program():
        return World(2, processes=2).run(lambda: 1)

    with pytest.warns(UserWarning, match="part of another one"):
        assert World(1).run(program) == [[1, 1]]


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        (4, {"processes": 0}, "processes is 0; of 4 ranks there can be 1 to 4"),
        (4, {"processes": 5}, "processes is 5; of 4 ranks there can be 1 to 4"),
        (4, {"processes": True}, "processes is True; it is a whole number"),
        (4, {"processes": 2.0}, "processes is 2.0; it is a whole number"),
        (4, {"processes": 2, "backend": "gloo"}, "with backend 'gloo' each rank is a process"),
    ],
)
def test_a_number_of_processes_that_makes_no_sense_is_refused(size, options, message):
    with pytest.raises(ValueError, match=message):
        World(size, **options)


def test_ranks_are_dealt_out_evenly():
    assert shares(4, 4) == [(0,), (1,), (2,), (3,)]
    assert shares(8, 2) == [(0, 3, 4, 7), (1, 2, 5, 6)]
    for size, parts in ((10, 3), (100, 3), (1024, 2), (7, 7)):
        dealt = shares(size, parts)
        assert sorted(rank for share in dealt for rank in share) == list(range(size))
        assert all(list(share) == sorted(share) for share in dealt)
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 4
    one, other = map(sum, shares(1024, 2))
    assert one == other, "what grows with the rank is shared evenly"
