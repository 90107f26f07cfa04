"""The critical path on timelines with known answers."""

from __future__ import annotations

import pytest

from ringlab.timeline import Timeline, critical_path, makespan
from tests.timeline.made import compute, event, hidden, late_sender, recv, send, timeline, wait


def names(run):
    return [(e.rank, e.kind, e.name) for e in critical_path(run).events]


def test_the_path_crosses_to_the_rank_that_sent_late():
    run = late_sender()
    assert names(run) == [
        (0, "compute", "attend"),
        (0, "send", "send"),
        (1, "wait", "recv"),
        (1, "compute", "attend"),
        (1, "compute", "merge"),
    ]
    path = critical_path(run)
    assert path.seconds == (5, 3, 0, 0.5, 0.5)
    assert path.length == makespan(run) == 9
    assert path.seconds_of("compute") == 6
    assert path.seconds_of("send", "recv") == 3


def test_a_hidden_message_is_not_on_the_path():
    path = critical_path(hidden())
    assert {e.kind for e in path.events} == {"compute"}
    assert path.seconds_of("compute") == path.length == 4


def test_a_receive_that_is_posted_late_is_its_own_ranks_fault():
    run = timeline(
        send(0, 0, 1, 8, 0, 6),
        wait(0, 0, 0, 6, name="send", peer=1),
        compute(1, 0, 4),
        recv(1, 0, 0, 8, 4, 6),
        wait(1, 0, 4, 6, name="recv", peer=0),
    )
    assert names(run) == [(1, "compute", "attend"), (1, "recv", "recv"), (0, "wait", "send")]
    assert critical_path(run).seconds == (4, 2, 0)


def test_a_collective_begins_with_its_last_member():
    run = timeline(
        compute(0, 0, 1),
        event(0, "collective", 0, 1, 7, name="all_gather"),
        wait(0, 0, 1, 7, name="all_gather"),
        compute(1, 0, 5),
        event(1, "collective", 0, 5, 7, name="all_gather"),
        wait(1, 0, 5, 7, name="all_gather"),
        compute(0, 7, 9),
    )
    assert names(run) == [
        (1, "compute", "attend"),
        (1, "collective", "all_gather"),
        (0, "wait", "all_gather"),
        (0, "compute", "attend"),
    ]
    assert critical_path(run).seconds == (5, 2, 0, 2)


def test_the_time_before_the_first_event_belongs_to_the_length():
    path = critical_path(timeline(compute(0, 2, 5)))
    assert (path.before, path.seconds, path.length) == (2, (3,), 5)


def test_where_both_ends_are_issued_at_once_the_path_stays_on_its_rank():
    run = timeline(
        compute(0, 0, 1),
        send(0, 0, 1, 8, 1, 3),
        compute(1, 0, 1),
        recv(1, 0, 0, 8, 1, 3),
        wait(1, 0, 1, 3, name="recv", peer=0),
    )
    assert {rank for rank, *_ in names(run)} == {1}


def test_a_run_that_ends_with_a_message_nobody_waited_for_ends_with_its_later_end():
    run = timeline(compute(0, 0, 4), send(0, 0, 1, 8, 4, 6), recv(1, 0, 0, 8, 0, 6.5))
    assert names(run) == [(0, "compute", "attend"), (0, "send", "send"), (1, "recv", "recv")]
    assert critical_path(run).seconds == (4, 2.5, 0)


def test_a_wait_that_hardly_blocked_was_not_held_up_by_its_message():
    run = timeline(
        send(0, 0, 1, 8, 0, 1),
        compute(0, 0, 0.5),
        recv(1, 0, 0, 8, 0, 1),
        compute(1, 0, 0.995),
        wait(1, 0, 0.995, 1, name="recv", peer=0),
        compute(1, 1, 2),
    )
    assert [kind for _, kind, _ in names(run)] == ["compute", "wait", "compute"]


def test_a_message_that_half_hides_behind_compute_is_on_the_path_from_its_issue():
    run = timeline(
        send(0, 0, 1, 8, 0, 4),
        recv(1, 0, 0, 8, 0, 4),
        compute(1, 0, 3),
        wait(1, 0, 3, 4, name="recv", peer=0),
        compute(1, 4, 5),
    )
    assert [kind for _, kind, _ in names(run)] == ["recv", "wait", "compute"]
    assert critical_path(run).seconds == (4, 0, 1)


def test_idle_time_counts_to_the_event_before_it():
    assert critical_path(timeline(compute(0, 0, 1), compute(0, 3, 4))).seconds == (3, 1)


def test_waits_of_no_length_at_one_moment_do_not_end_the_walk():
    run = timeline(
        compute(0, 0, 4),
        send(0, 0, 1, 8, 1, 2),
        recv(1, 0, 0, 8, 0, 2),
        wait(0, 0, 4, 4, name="send", peer=1),
        wait(0, 0, 4, 4, name="send", peer=1),
        compute(0, 4, 4),
        compute(0, 4, 5),
        wait(1, 0, 0, 2, name="recv", peer=0),
    )
    path = critical_path(run)
    assert path.before == 0
    assert path.length == 5
    assert path.seconds_of("compute") == 5


@pytest.mark.parametrize("size", [1, 3])
def test_an_empty_run_has_an_empty_path(size):
    path = critical_path(Timeline(size))
    assert (path.events, path.length) == ((), 0)
