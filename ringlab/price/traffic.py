"""What shares a port with what: contention that does not depend on when things happen.

Messages belong to rounds. The round of a message is the length of the longest chain of
messages that must be over before it can start: in a ring the t-th hop of every rank is in
round t. All messages of a round that cross a port in the same direction count as
starting together and share its rate evenly, so that of n messages with sizes b_i the j-th
has crossed it after ``sum(min(b_i, b_j)) / rate``. Messages of different rounds do not slow one
another down.

That is what happens where ranks keep step. Where they drift apart it charges for messages
that in truth miss each other, and overlooks those of different rounds that meet. In return
more bandwidth never makes anything slower, which no model that shares by the moment can
promise (a message that arrives earlier lets the next one start earlier, which may then be in
the way of a third).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringlab.machine.topology import Port, Topology
from ringlab.price.columns import COLLECTIVE, Columns, Numbers
from ringlab.price.engine import Durations, Simulation
from ringlab.price.program import Program


def rounds(simulation: Simulation) -> Numbers:
    """The round of each transfer."""
    program = simulation.program
    unit = Durations(
        compute=np.zeros(len(program.events), dtype=np.int64),
        transfer=np.ones(len(program.transfers), dtype=np.int64),
        host=np.zeros(len(program.launches), dtype=np.int64),
    )
    return simulation.run(unit, simulation.at_zero()).arrived - 1


def heaviest(program: Program, rounds: Numbers, topology: Topology) -> Numbers:
    """Of each transfer the bytes that cross its busiest port until it has crossed it.

    Parameters
    ----------
    program : Program
    rounds : array
        Transfer by transfer.
    topology : Topology
    """
    transfer, port, size = _loads(program, topology)
    until = _until(rounds[transfer], port, size)
    most = np.zeros(len(program.transfers), dtype=np.int64)
    np.maximum.at(most, transfer, until)
    return most


def _until(round_: Numbers, port: Numbers, size: Numbers) -> Numbers:
    """Bytes over a port in a round until each of those that share it has crossed it."""
    order = np.lexsort((size, port, round_))
    same_port = (np.diff(round_[order], prepend=-1) == 0) & (np.diff(port[order], prepend=-1) == 0)
    same_size = same_port & (np.diff(size[order], prepend=-1) == 0)
    begin, end = _spans(same_port)
    _, last = _spans(same_size)  # those of one size have crossed together
    total = np.cumsum(size[order])
    before = np.where(begin > 0, total[begin - 1], 0)
    until = np.empty_like(size)
    until[order] = total[last - 1] - before + size[order] * (end - last)
    return until


def _spans(continues: Numbers) -> tuple[Numbers, Numbers]:
    """Where the group of each element begins and, behind its last one, ends."""
    begins = np.flatnonzero(~continues)
    lengths = np.diff(begins, append=len(continues))
    return np.repeat(begins, lengths), np.repeat(begins + lengths, lengths)


def _loads(program: Program, topology: Topology) -> tuple[Numbers, Numbers, Numbers]:
    """What crosses which ports, as arrays: transfer, port, bytes.

    A message crosses those of its path, a collective those of its ring.
    """
    events, lead = program.events, program.transfers.lead
    ports = _Ports(topology)
    collective = events.kind[lead] == COLLECTIVE
    messages = np.flatnonzero(~collective)
    pair = events.rank[lead[messages]] * program.world_size + events.peer[lead[messages]]
    pairs, which = np.unique(pair, return_inverse=True)
    paths = [ports.along(*divmod(int(each), program.world_size)) for each in pairs]
    counts = np.array([len(path) for path in paths], dtype=np.int64)
    crossed = np.array([port for path in paths for port in path], dtype=np.int64)
    first, sizes = (np.cumsum(counts) - counts)[which], counts[which]
    inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rings = [
        (number, port, size)
        for number in np.flatnonzero(collective).tolist()
        for port, size in _ring(events, program.transfers.parts(number), ports)
    ]
    others = np.array(rings, dtype=np.int64).reshape(-1, 3).T
    return (
        np.concatenate([np.repeat(messages, sizes), others[0]]),
        np.concatenate([crossed[np.repeat(first, sizes) + inside], others[1]]),
        np.concatenate([np.repeat(events.bytes_out[lead[messages]], sizes), others[2]]),
    )


def _ring(events: Columns, places: Numbers, ports: _Ports) -> Iterator[tuple[int, int]]:
    """The ports of a collective's ring, and the bytes over each."""
    group = events.of(int(places[0])).group
    part = {int(events.rank[place]): place for place in places}
    for member, follower in zip(group, (*group[1:], group[0]), strict=True):
        if member != follower:
            size = max(int(events.bytes_out[part[member]]), int(events.bytes_in[part[follower]]))
            for port in ports.along(member, follower):
                yield port, size


class _Ports:
    """The ports of a topology, numbered as they are met."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._numbers: dict[Port, int] = {}

    def along(self, sender: int, receiver: int) -> list[int]:
        """The ports that lie between two ranks."""
        _, path = self._topology.path(sender, receiver)
        return [self._numbers.setdefault(port, len(self._numbers)) for port in path]
