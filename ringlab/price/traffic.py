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

from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate

from ringlab.machine.topology import Port, Topology
from ringlab.price.engine import Durations, State, run
from ringlab.price.program import Program
from ringlab.timeline import Timeline

Load = list[tuple[Port, int]]
"""Bytes over ports."""


def rounds(program: Program, events: int) -> list[int]:
    """The round of each transfer."""
    durations = Durations(
        compute=[0] * events,
        transfer=[1] * len(program.transfers),
        host=[0] * len(program.operations),
    )
    arrived = run(program, durations, State.zero(program)).arrived
    return [moment - 1 for moment in arrived]


def load(recording: Timeline, transfer: tuple[int, ...], topology: Topology) -> Load:
    """The bytes of a message on the ports it crosses, or of a collective on those of its ring."""
    events = recording.events
    first = events[transfer[0]]
    if first.kind != "collective":
        assert first.peer is not None
        return [(port, first.bytes_out) for port in topology.path(first.rank, first.peer)[1]]
    parts = {events[place].rank: events[place] for place in transfer}
    loads: Load = []
    for member, follower in zip(first.group, (*first.group[1:], first.group[0]), strict=True):
        if member != follower:
            size = max(parts[member].bytes_out, parts[follower].bytes_in)
            loads += [(port, size) for port in topology.path(member, follower)[1]]
    return loads


class Contention:
    """How long bytes take on the ports they share.

    Parameters
    ----------
    loads : list of Load
        Transfer by transfer.
    rounds : list of int
        Transfer by transfer.
    """

    def __init__(self, loads: list[Load], rounds: list[int]) -> None:
        self._loads, self._rounds = loads, rounds
        sizes: defaultdict[tuple[int, Port], list[int]] = defaultdict(list)
        for round_, transfer in zip(rounds, loads, strict=True):
            for port, size in transfer:
                sizes[round_, port].append(size)
        self._shared = {
            key: (ordered, [0, *accumulate(ordered)])
            for key, found in sizes.items()
            if len(ordered := sorted(found)) > 1
        }

    def heaviest(self, transfer: int) -> int:
        """Bytes that cross its busiest port until a transfer has crossed it."""
        round_ = self._rounds[transfer]
        return max((self._until(round_, *one) for one in self._loads[transfer]), default=0)

    def _until(self, round_: int, port: Port, size: int) -> int:
        shared = self._shared.get((round_, port))
        if shared is None:
            return size
        sizes, sums = shared
        smaller = bisect_right(sizes, size)
        return sums[smaller] + size * (len(sizes) - smaller)
