"""Bytes in flight and blocks held, on timelines with known answers."""

from __future__ import annotations

import pytest

from ringlab.timeline import NoClock, peak_bytes_in_flight, peak_kv_blocks, traffic
from tests.timeline.made import compute, event, hidden, recv, send, timeline, wait, without_clock


def test_a_rank_has_handed_over_what_it_sends_and_receives_until_it_has_waited():
    run = timeline(
        send(0, 0, 1, 10),
        recv(0, 1, 1, 7),
        wait(0, 0, name="send", peer=1),
        send(0, 2, 1, 5),
        wait(0, 1, name="recv", peer=1),
        wait(0, 2, name="send", peer=1),
    )
    assert peak_bytes_in_flight(run, 0) == 17
    assert peak_bytes_in_flight(run, 1) == 0


def test_a_batch_is_handed_back_when_all_of_it_has_been_waited_for():
    run = timeline(
        send(0, 0, 1, 10),
        recv(0, 0, 1, 10),
        wait(0, 0, name="send", peer=1),
        send(0, 1, 1, 1),
        wait(0, 0, name="recv", peer=1),
        send(0, 2, 1, 2),
    )
    assert peak_bytes_in_flight(run, 0) == 21


def test_the_network_carries_each_message_once():
    assert peak_bytes_in_flight(hidden()) == 200
    one_by_one = timeline(
        send(0, 0, 1, 10, 0, 1), recv(1, 0, 0, 10, 0, 1), send(1, 1, 0, 7, 1, 2),
        recv(0, 1, 1, 7, 0, 3),
    )  # fmt: skip
    assert peak_bytes_in_flight(one_by_one) == 10


def test_the_network_needs_a_clock_and_a_rank_needs_none():
    run = without_clock(hidden())
    assert peak_bytes_in_flight(run, 0) == 200
    with pytest.raises(NoClock):
        peak_bytes_in_flight(run)


def ring(size, block, hops=None):
    events = []
    for rank in range(size):
        for hop in range(size - 1 if hops is None else hops):
            events += [
                send(rank, hop, (rank + 1) % size, block),
                recv(rank, hop, (rank - 1) % size, block),
                compute(rank, None, None),
                wait(rank, hop, name="send", peer=(rank + 1) % size),
                wait(rank, hop, name="recv", peer=(rank - 1) % size),
            ]
        events.append(compute(rank, None, None))
    return timeline(*events, size=size)


@pytest.mark.parametrize(("size", "blocks"), [(1, 1), (2, 2), (3, 3), (8, 3)])
def test_a_ring_has_at_most_three_blocks_whatever_its_size(size, blocks):
    assert peak_kv_blocks(ring(size, 100), 0, 100) == blocks


def test_an_all_gather_has_the_blocks_of_all_ranks():
    run = timeline(
        *(event(r, "collective", 0, name="all_gather", bytes_in=300, bytes_out=300)
          for r in range(4)), size=4,
    )  # fmt: skip
    assert peak_kv_blocks(run, 2, 100) == 4


def test_keys_and_values_that_travel_apart_are_halves_of_a_block():
    run = timeline(
        recv(0, 0, 1, 50), recv(0, 1, 1, 50), wait(0, 0, name="recv", peer=1),
        wait(0, 1, name="recv", peer=1), recv(0, 2, 1, 50), recv(0, 3, 1, 50),
    )  # fmt: skip
    assert peak_kv_blocks(run, 0, 100) == 3


def test_a_block_has_a_size():
    with pytest.raises(ValueError, match="positive"):
        peak_kv_blocks(ring(2, 8), 0, 0)


def collective(name, sent, received):
    group = tuple(range(len(sent)))
    return timeline(
        *(event(r, "collective", 0, name=name, bytes_out=o, bytes_in=i, group=group)
          for r, (o, i) in enumerate(zip(sent, received, strict=True))), size=len(sent),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (ring(3, 10), [[0, 20, 0], [0, 0, 20], [20, 0, 0]]),
        (collective("all_gather", [8, 8, 8], [8, 8, 8]), [[0, 8, 0], [0, 0, 8], [8, 0, 0]]),
        (collective("broadcast", [0, 4, 4], [4, 0, 4]), [[0, 0, 0], [0, 0, 4], [4, 0, 0]]),
        (collective("reduce", [4, 0, 4], [0, 4, 4]), [[0, 0, 4], [0, 0, 0], [0, 4, 0]]),
        (collective("gather", [5, 0, 5], [0, 10, 0]), [[0, 5, 0], [0, 0, 0], [0, 5, 0]]),
        (collective("scatter", [0, 10, 0], [5, 0, 5]), [[0, 0, 0], [5, 0, 5], [0, 0, 0]]),
        (collective("all_to_all", [6, 6, 6], [6, 6, 6]), [[0, 3, 3], [3, 0, 3], [3, 3, 0]]),
    ],
    ids=["ring", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all"],
)
def test_traffic_goes_where_the_algorithm_sends_it(run, expected):
    assert traffic(run) == expected
    size = run.world_size
    assert [sum(row) for row in expected] == [run.bytes_sent(r) for r in range(size)]
    assert [sum(col) for col in zip(*expected, strict=True)] == [
        run.bytes_received(r) for r in range(size)
    ]
