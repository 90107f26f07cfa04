"""How long each event of a recording takes on a machine."""

from __future__ import annotations

import numpy as np

from ringlab.machine.machine import Machine
from ringlab.operators import UnpricedOperator
from ringlab.price.clock import ticks
from ringlab.price.collectives import collective_seconds
from ringlab.price.columns import COLLECTIVE, COMPUTE, Columns, Numbers
from ringlab.price.engine import Durations, Simulation
from ringlab.price.roofline import roof
from ringlab.price.traffic import heaviest, rounds


def durations(simulation: Simulation, machine: Machine) -> Durations:
    """Durations of everything.

    Raises
    ------
    UnpricedOperator
        If an operator has no formula.
    """
    program = simulation.program
    compute = _compute(program.events, machine)
    transfer = _transfers(simulation, machine)
    host = np.zeros(len(program.launches), dtype=np.int64)
    if machine.transport.host:
        launch = program.launches.of_event[program.transfers.ends]
        np.maximum.at(host, launch, transfer[program.transfers.of_end])
        lengths, which = np.unique(host, return_inverse=True)
        share = machine.transport.host
        host = np.array([ticks(share * length / 1e12) for length in lengths.tolist()])[which]
    return Durations(compute, transfer, host)


def _compute(events: Columns, machine: Machine) -> Numbers:
    takes = np.zeros(len(events.whats), dtype=np.int64)
    used = np.unique(events.what[events.kind == COMPUTE])
    for number in used.tolist():
        what = events.whats[number]
        if what.work is None:
            raise UnpricedOperator(what.name)
        takes[number] = ticks(roof(what.work, machine.chip).seconds)
    found: Numbers = takes[events.what]
    return found


def _transfers(simulation: Simulation, machine: Machine) -> Numbers:
    program = simulation.program
    events, lead = program.events, program.transfers.lead
    crossing = heaviest(program, rounds(simulation), machine.topology)
    takes = np.zeros(len(lead), dtype=np.int64)
    collective = events.kind[lead] == COLLECTIVE
    for number in np.flatnonzero(collective).tolist():
        what = events.of(int(lead[number]))
        takes[number] = _collective(what.name, what.group, int(crossing[number]), machine)
    messages = np.flatnonzero(~collective)
    place = lead[messages]
    alike = np.stack([events.rank[place] * program.world_size + events.peer[place],
                      events.bytes_out[place], crossing[messages]])  # fmt: skip
    numbers, first = _classes(alike)
    known = [
        _message(*divmod(int(pair), program.world_size), int(size), int(through), machine)
        for pair, size, through in alike[:, first].T
    ]
    takes[messages] = np.array(known, dtype=np.int64)[numbers]
    return takes


def _classes(columns: Numbers) -> tuple[Numbers, Numbers]:
    """Of each column of a matrix the number of its like, and where each like stands first."""
    key = np.zeros(columns.shape[1], dtype=np.int64)
    for row in columns:
        _, value = np.unique(row, return_inverse=True)
        _, key = np.unique(key * (int(value.max(initial=0)) + 1) + value, return_inverse=True)
    _, first = np.unique(key, return_index=True)
    return key, first


def _collective(name: str, group: tuple[int, ...], crossing: int, machine: Machine) -> int:
    """Duration of a collective whose busiest port is crossed by some bytes."""
    if len(group) < 2:
        return 0
    moving = crossing / _slowest(group, machine)
    return ticks(collective_seconds(name, group, moving, machine)[0])


def _message(sender: int, receiver: int, size: int, crossing: int, machine: Machine) -> int:
    """Duration of a message whose busiest port is crossed by some bytes, its own among them."""
    link, _ = machine.topology.path(sender, receiver)
    transport = machine.transport
    protocols = transport.ring if size <= transport.small else transport.ring[-1:]
    return min(
        ticks(each.base + each.hops[link.wire] + crossing / (link.rate * each.share))
        for each in protocols
    )


def _slowest(group: tuple[int, ...], machine: Machine) -> float:
    """The rate of the slowest link of a ring through a group."""
    neighbours = zip(group, (*group[1:], group[0]), strict=True)
    return min(machine.topology.path(a, b)[0].rate for a, b in neighbours)
