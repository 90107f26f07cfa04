"""Where ranks sit and which ports a message crosses."""

from __future__ import annotations

from dataclasses import dataclass

from ringlab.machine.links import Link

Port = tuple[str, int, int]
"""A direction of one link: what it is, and the two numbers that tell it from its like."""


@dataclass(frozen=True)
class Topology:
    """Nodes of equal devices; rank r is device ``r % per_node`` of node ``r // per_node``.

    Parameters
    ----------
    nodes, per_node : int
    inside : Link
        What joins the devices of a node.
    mesh : bool
        Whether each pair of a node has a link of its own. Otherwise each device has one into
        a switch that never blocks.
    between : Link or None
        A network card's link; None for a single node.
    cards : int
        Network cards of a node, shared evenly by its devices. Beyond them the network
        never blocks.
    """

    nodes: int
    per_node: int
    inside: Link
    mesh: bool = False
    between: Link | None = None
    cards: int = 0

    @property
    def size(self) -> int:
        """Devices."""
        return self.nodes * self.per_node

    def node(self, rank: int) -> int:
        """The node a rank sits in."""
        return rank // self.per_node

    def path(self, sender: int, receiver: int) -> tuple[Link, tuple[Port, ...]]:
        """The slowest link between two ranks, and every port that a message crosses.

        Links are full duplex: what leaves a device and what enters it use different ports.
        """
        if self.node(sender) == self.node(receiver):
            if self.mesh:
                return self.inside, (("pair", sender, receiver),)
            return self.inside, (("out", sender, 0), ("in", receiver, 0))
        if self.between is None:
            raise ValueError("a message between nodes, and the topology has no link for it.")
        return self.between, (self._card("sends", sender), self._card("receives", receiver))

    def spans(self, ranks: tuple[int, ...]) -> int:
        """How many nodes some ranks sit in."""
        return len({self.node(rank) for rank in ranks})

    def _card(self, what: str, rank: int) -> Port:
        return (what, self.node(rank), rank % self.per_node * self.cards // self.per_node)
