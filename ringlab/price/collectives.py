"""How long a collective takes: the fastest of the documented algorithms that can do it.

With W members, n bytes of one member's chunk, a step latency a and a rate B of the slowest
link of the ring:

* all_gather, reduce_scatter: ring, (W-1)·(a + n/B).
* all_reduce of n bytes: ring, 2·(W-1)·(a + n/(W·B)); tree, 2·(log2(nodes) + W/nodes - 1)·a and
  2·n/B; in the switch of one node, n·(W-1)/(W·B).
* broadcast, reduce: a pipelined chain, W·a + n/B.
* all_to_all, gather, scatter: messages at once, a + bytes of the busiest member / B.
* barrier: an all_reduce of nothing.

References
----------
Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH,
2005; NCCL, src/graph/tuning.cc (latencies, and the switch's share of bandwidth).
"""

from __future__ import annotations

import math

from ringlab.machine.links import Wire
from ringlab.machine.machine import Machine
from ringlab.machine.transport import Protocol

_RINGS = ("all_gather", "reduce_scatter", "all_reduce", "barrier")


def collective_seconds(
    name: str, members: tuple[int, ...], moving: float, machine: Machine
) -> tuple[float, str]:
    """Time a collective, and say by which algorithm.

    Parameters
    ----------
    name : str
        As in ``torch.distributed``.
    members : tuple of int
        World ranks in group order, at least two.
    moving : float
        Seconds that the bytes of the ring algorithm take on their busiest port, at full rate.
    machine : Machine

    Returns
    -------
    seconds : float
    algorithm : str
    """
    measured = machine.transport.measured.get(name)
    if measured is not None:
        return _ring(name, members, moving, measured, machine), "as measured"
    choices = [
        (_ring(name, members, moving, protocol, machine), f"ring {protocol.name}")
        for protocol in machine.transport.ring
    ]
    if name == "all_reduce":
        choices += [
            (_tree(members, moving, protocol, machine), f"tree {protocol.name}")
            for protocol in machine.transport.tree
        ]
    choices += _in_switch(name, members, moving, machine)
    return min(choices)


def _ring(
    name: str, members: tuple[int, ...], moving: float, protocol: Protocol, machine: Machine
) -> float:
    inside, between = _step(members, protocol, machine)
    nodes = machine.topology.spans(members)
    steps, crossings = len(members) - 1, nodes - 1 if nodes > 1 else 0
    if name in ("all_reduce", "barrier"):
        steps, crossings = 2 * steps, 2 * crossings
    elif name not in _RINGS and name not in ("broadcast", "reduce"):
        steps, crossings = 1, int(nodes > 1)
    latency = (steps - crossings) * inside + crossings * between
    return protocol.base + latency + moving / protocol.share


def _tree(members: tuple[int, ...], moving: float, protocol: Protocol, machine: Machine) -> float:
    inside, between = _step(members, protocol, machine)
    nodes, size = machine.topology.spans(members), len(members)
    latency = 2 * ((size / nodes - 1) * inside + math.log2(nodes) * between)
    up_and_down = moving * size / (size - 1)  # 2·n/B where the ring has 2·n·(W-1)/(W·B)
    return protocol.base + latency + up_and_down / protocol.share


def _in_switch(
    name: str, members: tuple[int, ...], moving: float, machine: Machine
) -> list[tuple[float, str]]:
    """NVLS: the switch of a node multiplies and adds."""
    share = machine.transport.in_switch.get(machine.chip.compute_capability)
    topology = machine.topology
    one_node = topology.spans(members) == 1 and topology.inside.wire == "nvlink"
    if share is None or not one_node or len(members) < 3 or name not in _RINGS[:3]:
        return []
    factor = 0.5 if name == "all_reduce" else 1.0
    return [(machine.transport.switch_latency + moving * factor / share, "NVLS")]


def _step(members: tuple[int, ...], protocol: Protocol, machine: Machine) -> tuple[float, float]:
    """Latency of a step inside a node and between two."""
    topology = machine.topology
    wire: Wire = topology.inside.wire
    inside = protocol.hops[wire]
    between = protocol.hops[topology.between.wire] if topology.between else inside
    return inside, between
