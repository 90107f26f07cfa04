"""The compact store of events reads like the tuple that it stands for."""

from __future__ import annotations

import pickle

import pytest
import torch
import torch.distributed as dist

from ringlab import World
from ringlab.timeline import Timeline, makespan
from ringlab.timeline.log import EventLog


def program() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.ones(3, 4)
    dist.send(x, 1) if rank == 0 else dist.recv(x) if rank == 1 else None
    for _ in range(rank + 1):
        x = torch.mm(x, torch.ones(4, 4))
    dist.all_reduce(x)
    dist.broadcast(torch.ones(size), 0)


@pytest.fixture(scope="module")
def recorded() -> Timeline:
    world = World(3, order="host")
    world.run(program)
    return world.timeline


def test_it_equals_the_tuple_of_its_events(recorded):
    log = recorded.events
    events = tuple(log)
    assert isinstance(log, EventLog)
    assert log == events
    assert events == log
    assert hash(log) == hash(events)
    assert log != events[:-1]
    assert (len(log), log[2], log[-3:]) == (len(events), events[2], events[-3:])
    assert Timeline(3, events) == recorded


def test_events_that_go_in_come_out(recorded):
    events = tuple(recorded)
    assert EventLog.of(events).events == events
    assert EventLog.of(recorded.events) is recorded.events
    assert len(EventLog.of(())) == 0


def test_what_recurs_is_kept_once(recorded):
    computed = [event for event in recorded if event.kind == "compute"]
    whats = [what for what in recorded.events.whats if what.name == "aten::mm"]
    assert len([event for event in computed if event.name == "aten::mm"]) == 6
    assert len(whats) == 1


def test_the_sender_of_a_receive_from_any_rank_is_filled_in(recorded):
    (recv,) = [event for event in recorded if event.kind == "recv"]
    assert recv.peer == 0


def test_times_are_kept_beside_the_same_events(recorded):
    priced = World(3, order="host")
    priced.run(program)
    timed = priced.price("8x h100-nvlink")
    assert [event._replace(start=None, end=None) for event in timed] == list(recorded)
    assert makespan(timed) == max(event.end for event in timed) > 0
    assert pickle.loads(pickle.dumps(timed)) == timed != recorded
