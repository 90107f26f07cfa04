"""Machines: chips, links and topologies, every figure with its source."""

from ringlab.machine.chips import CHIPS, Chip
from ringlab.machine.figures import Figure
from ringlab.machine.links import LINKS, Link
from ringlab.machine.machine import Machine
from ringlab.machine.topology import Topology
from ringlab.machine.transport import Transport

__all__ = ["CHIPS", "LINKS", "Chip", "Figure", "Link", "Machine", "Topology", "Transport"]
