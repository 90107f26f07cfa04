"""Where time was lost, on timelines with known answers."""

from __future__ import annotations

import random

import pytest

from ringlab.timeline import Timeline, busy, lost_time, makespan
from tests.timeline.made import compute, event, hidden, late_sender, recv, send, timeline, wait


def test_waiting_for_a_rank_that_computes_is_imbalance_and_for_a_message_communication():
    lost = lost_time(late_sender())
    # rank 1 waits 2-5 while rank 0 computes, and 5-8 for the message; rank 0 issues that from 5
    # to 5.5, waits for it until 8, and until 9 for rank 1 to be done
    assert lost.useful == 7.5
    assert lost.imbalance == 3 + 1
    assert lost.communication == 3 + 3
    assert lost.merge == 0.5
    assert lost.rest == 0
    assert lost.useful + lost.lost == 2 * 9
    assert sum(lost.shares().values()) == pytest.approx(1)
    assert lost.efficiency == 7.5 / 18


def test_nothing_is_lost_where_communication_hides():
    lost = lost_time(hidden())
    assert (lost.lost, lost.efficiency) == (0, 1)
    assert set(lost.shares().values()) == {0}


def test_who_waits_for_one_who_waits_is_judged_by_what_that_one_waits_for():
    """Rank 2 waits for 1, which waits for 0, which computes 3 s; each message takes 1 s."""
    run = timeline(
        compute(0, 0, 3),
        send(0, 0, 1, 8, 3, 4),
        recv(1, 0, 0, 8, 0, 4),
        wait(1, 0, 0, 4, name="recv", peer=0),
        send(1, 1, 2, 8, 4, 5),
        recv(2, 0, 1, 8, 0, 5),
        wait(2, 0, 0, 5, name="recv", peer=1),
        size=3,
    )
    lost = lost_time(run)
    assert lost.useful == 3
    assert lost.imbalance == 3 + 3
    # in their waits 1 s of rank 1 and 2 s of rank 2; then ranks 0 (from 3 s) and 1 (from 4 s) are
    # done and wait for rank 2, whose message is on its way
    assert lost.communication == 1 + 2 + 2 + 1
    assert lost.rest == 0
    assert lost.useful + lost.lost == pytest.approx(3 * 5)


def test_a_rank_that_neither_computes_nor_waits_is_rest():
    lost = lost_time(timeline(compute(0, 1, 2), compute(0, 3, 4), compute(1, 0, 4)))
    assert (lost.useful, lost.rest, lost.lost) == (6, 2, 2)


def test_a_rank_that_is_done_early_waits_for_the_one_that_computes_longest():
    lost = lost_time(timeline(compute(0, 0, 1), compute(1, 0, 4)))
    assert (lost.imbalance, lost.lost) == (3, 3)


def test_copies_into_buffers_are_rest_and_merges_of_operators_are_merge():
    run = timeline(
        compute(0, 0, 1, name="aten::copy_", label="copy"),
        compute(0, 1, 3, name="ringlab::merge_"),
        compute(0, 3, 4),
        size=1,
    )
    lost = lost_time(run)
    assert (lost.rest, lost.merge, lost.useful) == (1, 2, 1)


def test_a_collective_waits_for_its_last_member():
    run = timeline(
        event(0, "collective", 0, 0, 7, name="all_gather"),
        wait(0, 0, 0, 7, name="all_gather"),
        compute(1, 0, 5),
        event(1, "collective", 0, 5, 7, name="all_gather"),
        wait(1, 0, 5, 7, name="all_gather"),
    )
    lost = lost_time(run)
    assert (lost.imbalance, lost.communication, lost.rest) == (5, 4, 0)


def test_what_a_rank_has_under_way_while_it_does_nothing_is_communication():
    run = timeline(compute(0, 0, 1), send(0, 0, 1, 8, 2, 3), compute(0, 4, 5), size=1)
    lost = lost_time(run)
    assert (lost.useful, lost.communication, lost.rest) == (2, 1, 2)


def test_ranks_that_wait_for_one_another_in_times_that_cannot_be_are_rest():
    """Each waits, from 0 to 5, for what the other issues at 5: no run, but no endless question."""
    events = []
    for rank in (0, 1):
        other = 1 - rank
        events += [
            recv(rank, 0, other, 8, 0, 5),
            wait(rank, 0, 0, 5, name="recv", peer=other),
            send(rank, 1, other, 8, 5, 5),
        ]
    assert lost_time(timeline(*events)).rest == 10


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happened_the_parts_are_the_whole(seed: int):
    run = at_random(random.Random(seed))
    lost = lost_time(run)
    assert lost.useful + lost.lost == pytest.approx(run.world_size * makespan(run))
    assert min(lost.useful, lost.imbalance, lost.communication, lost.merge, lost.rest) >= -1e-9
    assert sum(lost.shares().values()) == pytest.approx(1)
    assert lost.useful + lost.merge == pytest.approx(
        sum(busy(run, rank) for rank in range(run.world_size))
    )


def at_random(chance: random.Random) -> Timeline:
    """A ring of random computes and messages, as a simulation of it would time it."""
    size, hops = chance.randint(2, 5), chance.randint(1, 4)
    now = [chance.random() for _ in range(size)]
    events = []
    for hop in range(hops):
        issued = list(now)
        done = [t + chance.choice([0.0, chance.random()]) for t in issued]
        for rank in range(size):
            label = chance.choice(["", "merge"])
            events.append(compute(rank, issued[rank], done[rank], label=label))
        for rank in range(size):
            after, before = (rank + 1) % size, (rank - 1) % size
            sent = max(issued[rank], issued[after]) + 0.3
            came = max(issued[before], issued[rank]) + 0.3
            left, got = max(done[rank], sent), max(done[rank], sent, came)
            events += [
                send(rank, hop, after, 8, issued[rank], sent),
                recv(rank, hop, before, 8, issued[rank], came),
                wait(rank, hop, done[rank], left, name="send", peer=after),
                wait(rank, hop, left, got, name="recv", peer=before),
            ]
            now[rank] = got + chance.random() / 10
    return timeline(*events, size=size)
