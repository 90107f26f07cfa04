"""A machine: chips, where they sit, and the library that moves their messages."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ringlab.machine.chips import Chip
from ringlab.machine.topology import Topology
from ringlab.machine.transport import Transport


@dataclass(frozen=True)
class Machine:
    """What a price is computed for.

    Parameters
    ----------
    name : str
        As in ``"4x8 h100-ib"``.
    chip : Chip
    topology : Topology
    transport : Transport

    Examples
    --------
    >>> from ringlab.machine import Machine
    >>> machine = Machine.named("4x8 h100-ib")
    >>> machine.size, machine.topology.between.name
    (32, 'InfiniBand NDR 400 Gb/s')
    """

    name: str
    chip: Chip
    topology: Topology
    transport: Transport

    @property
    def size(self) -> int:
        """Devices, one a rank."""
        return self.topology.size

    @classmethod
    def named(cls, name: str) -> Machine:
        """Find a machine by its name; see `ringlab.machine.names`.

        Raises
        ------
        ValueError
            Saying which part of the name is unknown and what there is.
        """
        from ringlab.machine.names import find

        return find(name)

    @classmethod
    def measure(cls, ranks: int = 2, *, threads: int = 1) -> Machine:
        """Measure the machine this runs on, with a small gloo world; takes some seconds.

        Parameters
        ----------
        ranks : int
            Processes, one a rank.
        threads : int
            Torch threads of each.

        Raises
        ------
        ValueError
            If ``ranks * threads`` is more than the cores this process may use: ranks that
            share a core are not predictable.
        """
        # Measuring needs a world, which stands on a floor above; pricing does not.
        from ringlab.calibration import measure

        return measure(ranks, threads)

    def faster(self, *, links: float = 1.0, compute: float = 1.0, memory: float = 1.0) -> Machine:
        """The machine with everything of a kind faster by a factor.

        Parameters
        ----------
        links : float
            On the bandwidth of every link.
        compute : float
            On every FLOP rate.
        memory : float
            On the bandwidth of memory.
        """
        for factor in (links, compute, memory):
            if not factor > 0:
                raise ValueError(f"a factor is positive; got {factor!r}.")
        inside, between = self.topology.inside, self.topology.between
        topology = replace(
            self.topology,
            inside=replace(inside, bandwidth=inside.bandwidth.times(links)),
            between=between and replace(between, bandwidth=between.bandwidth.times(links)),
        )
        chip = replace(
            self.chip,
            rates={name: rate.times(compute) for name, rate in self.chip.rates.items()},
            bandwidth=self.chip.bandwidth.times(memory),
        )
        return replace(self, topology=topology, chip=chip)
