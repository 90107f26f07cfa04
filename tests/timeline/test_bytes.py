"""What a timeline derives from its events."""

import pytest

from ringlab.timeline import Event, Timeline


def event(rank, kind, launch, peer=None, out=0, into=0):
    return Event(rank, kind, kind, launch, (0, 1, 2), peer, out, into, (1,), "float32", "a:1 in f")


RUN = Timeline(
    3,
    (
        event(0, "send", 0, peer=1, out=10),
        event(1, "recv", 0, peer=0, into=10),
        event(0, "recv", 0, peer=2, into=7),
        event(2, "send", 0, peer=0, out=7),
        event(0, "wait", 0),
        event(0, "send", 1, peer=1, out=3),
        event(1, "recv", 1, peer=0, into=3),
        event(1, "collective", 2, out=5, into=6),
    ),
)


def test_bytes_per_rank():
    assert [RUN.bytes_sent(r) for r in range(3)] == [13, 5, 7]
    assert [RUN.bytes_received(r) for r in range(3)] == [7, 19, 0]


def test_a_batch_is_one_hop_and_a_hop_that_only_receives_counts_as_one():
    assert RUN.hops(0) == (10, 3)
    assert RUN.hops(1) == (0, 0, 5)


def test_edges_hold_point_to_point_bytes_only():
    assert RUN.edges() == {(0, 1): 13, (2, 0): 7}


def test_events_of_a_rank_keep_their_order():
    assert [e.kind for e in RUN.of(0)] == ["send", "recv", "wait", "send"]
    assert [e.launch for e in RUN.of(0, "send")] == [0, 1]


def test_counts_by_kind():
    assert RUN.count("send") == 3
    assert RUN.count("recv", rank=1) == 2
    assert len(RUN) == len(list(RUN)) == 8


def test_a_rank_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="ranks are 0 to 2"):
        RUN.bytes_sent(3)


def test_a_timeline_does_not_change():
    with pytest.raises(AttributeError):
        RUN.world_size = 4
    assert hash(RUN) == hash(Timeline(3, RUN.events))
