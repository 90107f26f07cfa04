"""Which events belong together."""

from __future__ import annotations

from ringlab.timeline.matching import match
from tests.timeline.made import event, recv, send, timeline, wait


def test_messages_over_one_edge_are_matched_in_their_order():
    run = timeline(
        send(0, 0, 1, 8), send(0, 1, 1, 8), recv(1, 0, 0, 8), send(1, 1, 0, 8), recv(1, 2, 0, 8),
    )  # fmt: skip
    assert match(run).partner == {0: 2, 2: 0, 1: 4, 4: 1}


def test_messages_of_other_sizes_may_overtake():
    run = timeline(send(0, 0, 1, 8), send(0, 1, 1, 16), recv(1, 0, 0, 16), recv(1, 1, 0, 8))
    assert match(run).partner == {0: 3, 3: 0, 1: 2, 2: 1}


def test_messages_of_two_groups_are_kept_apart():
    run = timeline(send(0, 0, 1, 8), recv(1, 0, 0, 8, group=(1, 0)))
    assert match(run).partner == {}
    assert match(run).ends(0) == (0,)


def test_the_kth_collective_of_a_member_belongs_to_the_kth_of_the_others():
    names = ["gather", "reduce", "gather"]
    calls = [event(r, "collective", i, name=name) for r in (0, 1) for i, name in enumerate(names)]
    meeting = match(timeline(*calls)).meeting
    assert [meeting[place] for place in range(3)] == [(0, 3), (1, 4), (2, 5)]


def test_waits_for_a_batch_belong_to_its_operations_by_name_and_peer_and_then_in_order():
    run = timeline(
        send(0, 0, 1, 8), send(0, 0, 1, 9), recv(0, 0, 1, 8), recv(0, 0, 2, 8),
        wait(0, 0, name="recv", peer=2), wait(0, 0, name="send", peer=1),
        wait(0, 0, name="send", peer=1), wait(0, 0, name="recv", peer=1), size=3,
    )  # fmt: skip
    assert match(run).operation == {4: 3, 5: 0, 6: 1, 7: 2}


def test_a_wait_without_a_peer_belongs_to_the_receive_from_whoever_sent():
    run = timeline(recv(0, 0, 1, 8), wait(0, 0, name="recv", peer=None))
    assert match(run).operation == {1: 0}
