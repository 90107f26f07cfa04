"""How long each event of a recording takes on a machine."""

from __future__ import annotations

from ringlab.machine.machine import Machine
from ringlab.operators import UnpricedOperator
from ringlab.price.clock import ticks
from ringlab.price.collectives import collective_seconds
from ringlab.price.engine import Durations
from ringlab.price.program import Program
from ringlab.price.roofline import roof
from ringlab.price.traffic import Contention, load, rounds
from ringlab.timeline import Event, Timeline, Work


def durations(recording: Timeline, program: Program, machine: Machine) -> Durations:
    """Durations of everything.

    Raises
    ------
    UnpricedOperator
        If an operator has no formula.
    """
    compute = _compute(recording, machine)
    transfer = _transfers(recording, program, machine)
    host = [
        ticks(machine.transport.host * max(transfer[t] for t in operations) / 1e12)
        if machine.transport.host
        else 0
        for operations in program.operations
    ]
    return Durations(compute, transfer, host)


def _compute(recording: Timeline, machine: Machine) -> list[int]:
    known: dict[Work, int] = {}
    found = []
    for event in recording.events:
        if event.kind != "compute":
            found.append(0)
            continue
        work = event.work
        if work is None:
            raise UnpricedOperator(event.name)
        if work not in known:
            known[work] = ticks(roof(work, machine.chip).seconds)
        found.append(known[work])
    return found


def _transfers(recording: Timeline, program: Program, machine: Machine) -> list[int]:
    loads = [load(recording, transfer, machine.topology) for transfer in program.transfers]
    contention = Contention(loads, rounds(program, len(recording.events)))
    return [
        ticks(_seconds(recording.events[ends[0]], contention.heaviest(number), machine))
        for number, ends in enumerate(program.transfers)
    ]


def _seconds(event: Event, crossing: int, machine: Machine) -> float:
    """Seconds of a message or a collective whose busiest port is crossed by some bytes."""
    if event.kind == "collective":
        if len(event.group) < 2:
            return 0.0
        moving = crossing / _slowest(event.group, machine)
        return collective_seconds(event.name, event.group, moving, machine)[0]
    assert event.peer is not None
    link, _ = machine.topology.path(event.rank, event.peer)
    transport = machine.transport
    protocols = transport.ring if event.bytes_out <= transport.small else transport.ring[-1:]
    return min(
        each.base + each.hops[link.wire] + crossing / (link.rate * each.share) for each in protocols
    )


def _slowest(group: tuple[int, ...], machine: Machine) -> float:
    """The rate of the slowest link of a ring through a group."""
    neighbours = zip(group, (*group[1:], group[0]), strict=True)
    return min(machine.topology.path(a, b)[0].rate for a, b in neighbours)
