"""What no price may break, whatever the program and the machine."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringlab.machine import Machine
from ringlab.price import price
from ringlab.price.roofline import roof
from ringlab.timeline import Event, Timeline
from ringlab.timeline.matching import match
from tests.price.recordings import machines, recordings

TICK = 2e-12


def span(event: Event) -> tuple[float, float]:
    assert event.start is not None
    assert event.end is not None
    return event.start, event.end


@settings(max_examples=25)
@given(recording=recordings(), name=machines)
def test_the_same_recording_and_machine_give_the_same_timeline(
    recording: Timeline, name: str
) -> None:
    assert price(recording, name) == price(recording, name)
    assert price(price(recording, "8x h200-nvlink"), name) == price(recording, name)


@settings(max_examples=60)
@given(recording=recordings(), name=machines)
def test_no_event_is_before_its_cause(recording: Timeline, name: str) -> None:
    priced = price(recording, name)
    matching = match(priced)
    now = defaultdict(float)
    for place, event in enumerate(priced.events):
        start, end = span(event)
        assert 0 <= start <= end
        assert start >= now[event.rank]
        if event.kind in ("compute", "wait"):
            assert start == now[event.rank]
            now[event.rank] = end
        if place in matching.operation:
            assert end >= span(priced.events[matching.operation[place]])[1]
        for other in matching.ends(place):
            assert end >= span(priced.events[other])[0]
    for place, other in matching.partner.items():
        assert priced.events[place].end == priced.events[other].end


@settings(max_examples=60)
@given(recording=recordings(), name=machines)
def test_a_message_is_never_faster_than_its_link(recording: Timeline, name: str) -> None:
    topology = Machine.named(name).topology
    priced = price(recording, name)
    for place, other in match(priced).partner.items():
        event = priced.events[place]
        if event.kind != "send" or event.peer is None:
            continue
        began = max(span(event)[0], span(priced.events[other])[0])
        link, _ = topology.path(event.rank, event.peer)
        assert span(event)[1] - began + TICK >= event.bytes_out / link.bandwidth.value


@settings(max_examples=60)
@given(recording=recordings(), name=machines, what=st.sampled_from(["links", "compute", "memory"]))
def test_twice_as_fast_never_makes_anything_later(
    recording: Timeline, name: str, what: str
) -> None:
    machine = Machine.named(name)
    before, after = price(recording, machine), price(recording, machine.faster(**{what: 2.0}))
    for slow, fast in zip(before, after, strict=True):
        assert span(fast)[0] <= span(slow)[0]
        assert span(fast)[1] <= span(slow)[1]


@settings(max_examples=60)
@given(recording=recordings(most=1), name=machines)
def test_one_rank_takes_what_the_roofline_says(recording: Timeline, name: str) -> None:
    chip = Machine.named(name).chip
    expected = sum(roof(event.work, chip).seconds for event in recording if event.work)
    found = max((span(event)[1] for event in price(recording, name)), default=0.0)
    assert found == pytest.approx(expected, abs=TICK * (1 + len(recording)))


@settings(max_examples=60)
@given(recording=recordings(), name=machines)
def test_operations_of_one_group_on_a_rank_follow_one_another(
    recording: Timeline, name: str
) -> None:
    over: dict[tuple[int, tuple[int, ...]], dict[int, float]] = defaultdict(dict)
    for event in price(recording, name):
        if event.kind in ("send", "recv", "collective"):
            start, end = span(event)
            earlier = [e for n, e in over[event.rank, event.group].items() if n < event.launch]
            assert start >= max(earlier, default=0.0)
            known = over[event.rank, event.group].get(event.launch, 0.0)
            over[event.rank, event.group][event.launch] = max(known, end)
