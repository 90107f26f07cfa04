"""Busy, waiting, exposed, overlap and imbalance on timelines with known answers."""

from __future__ import annotations

import pytest

from ringlab.timeline import (
    NoClock,
    Timeline,
    Work,
    busy,
    critical_path,
    exposed_communication,
    flops,
    imbalance,
    lost_time,
    makespan,
    overlap,
    waiting,
)
from ringlab.timeline.spans import length, subtract, union
from tests.timeline.made import (
    compute,
    event,
    hidden,
    late_sender,
    recv,
    send,
    timeline,
    wait,
    without_clock,
)


def test_a_rank_is_busy_while_it_computes_and_waits_while_it_stands_in_a_wait():
    run = late_sender()
    assert [busy(run, rank) for rank in (0, 1)] == [5, 3]
    assert [waiting(run, rank) for rank in (0, 1)] == [2.5, 6]
    assert makespan(run) == 9


def test_compute_that_overlaps_itself_counts_once():
    assert busy(timeline(compute(0, 0, 3), compute(0, 2, 4), compute(0, 3, 3)), 0) == 4


def test_communication_is_exposed_while_nothing_is_computed():
    run = late_sender()
    assert [exposed_communication(run, rank) for rank in (0, 1)] == [3, 6]
    assert [exposed_communication(hidden(), rank) for rank in (0, 1)] == [0, 0]


def test_overlap_is_the_share_of_communication_behind_compute():
    run = late_sender()
    assert overlap(run, 0) == 0
    assert overlap(run, 1) == 2 / 8
    assert overlap(run) == 2 / 11
    assert overlap(hidden()) == 1


def test_without_communication_nothing_is_left_exposed():
    assert overlap(timeline(compute(0, 0, 1))) == 1


def test_imbalance_is_the_busiest_over_the_mean():
    assert imbalance(late_sender()) == 5 / 4
    assert imbalance(hidden()) == 1
    assert imbalance(Timeline(3)) == 1


def test_imbalance_without_a_clock_compares_floating_point_operations():
    work = Work("attention", 300, 0, 0, "float32")
    run = timeline(
        compute(0, None, None, work=work), compute(0, None, None), compute(1, None, None,
        work=work._replace(flops=100)), compute(1, None, None, work=work), size=2,
    )  # fmt: skip
    assert [flops(run, rank) for rank in (0, 1)] == [300, 400]
    assert imbalance(run) == 400 / 350


@pytest.mark.parametrize(
    "question",
    [makespan, overlap, critical_path, lost_time, lambda t: busy(t, 0), lambda t: waiting(t, 0),
     lambda t: exposed_communication(t, 0)],
)  # fmt: skip
def test_a_timeline_without_a_clock_says_how_to_get_one(question):
    with pytest.raises(
        NoClock, match=r"price it, as in world\.price\(.*\), or run the program on real"
    ):
        question(without_clock(late_sender()))


def test_an_operation_that_never_ended_is_named():
    run = timeline(send(0, 0, 1, 8, 0.0, None))
    with pytest.raises(NoClock, match=r"the send 'send' of rank 0 issued at ring.py:2 in ring"):
        makespan(run)


def test_a_rank_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="ranks are 0 to 1"):
        busy(hidden(), 2)


def test_steps_count_launches_waited_for_in_full():
    run = timeline(
        compute(0, 0, 1),
        send(0, 0, 1, 8, 1, 3),
        recv(0, 0, 1, 8, 1, 3),
        compute(0, 1, 2),
        wait(0, 0, 2, 3, name="send", peer=1),
        wait(0, 0, 3, 3, name="recv", peer=1),
        compute(0, 3, 4),
        event(0, "collective", 1, 4, 5, name="all_gather"),
        event(1, "collective", 0, 4, 5, name="all_gather"),
        event(0, "wait", 1, 4, 5, name="all_gather"),
        event(0, "wait", 1, 5, 5, name="all_gather"),
        compute(0, 5, 6),
    )
    assert [e.step for e in run.of(0)] == [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert [e.step for e in run.of(1)] == [0]


def test_spans_unite_and_subtract():
    assert union([(3, 4), (0, 1), (1, 2), (5, 5), (3.5, 6)]) == [(0, 2), (3, 6)]
    assert union([(0, 9), (1, 2)]) == [(0, 9)]
    assert length([(0, 2), (1, 3)]) == 3
    assert subtract([(0, 10)], [(1, 2), (4, 5), (9, 12)]) == [(0, 1), (2, 4), (5, 9)]
    assert subtract([(0, 1), (2, 3), (4, 9)], [(0, 2.5), (5, 6)]) == [(2.5, 3), (4, 5), (6, 9)]
    assert subtract([(0, 1)], []) == [(0, 1)]
