"""What software adds to a link: the latency of a message and of the steps of a collective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ringlab.machine.figures import Figure
from ringlab.machine.links import Wire


@dataclass(frozen=True)
class Protocol:
    """One way to move data: a small latency costs bandwidth.

    Parameters
    ----------
    name : str
    base : float
        Seconds that an operation takes before anything moves.
    hops : mapping of Wire to float
        Seconds a step, by the link it crosses.
    share : float
        Share of the link's rate.
    """

    name: str
    base: float
    hops: Mapping[Wire, float]
    share: float


@dataclass(frozen=True)
class Transport:
    """A communication library.

    Parameters
    ----------
    name : str
    ring, tree : tuple of Protocol
        For each algorithm; the fastest of them is taken. No tree: only rings.
    small : int
        Largest point-to-point message, in bytes, that may go by another protocol than the
        last of `ring`.
    in_switch : mapping of int to float
        Share of a link's rate that a reduction in the switch reaches, by compute capability;
        empty if there is none.
    switch_latency : float
        Seconds of a collective in the switch.
    host : float
        Share of an operation's time in which its rank cannot compute: 0 on a GPU, whose
        transfers run beside the kernels, 1 where the transport needs the same cores.
    source : Figure
        Where the numbers come from; its value has no meaning.
    measured : mapping of str to Protocol
        Collectives that were measured themselves, by name: a ring of this protocol, whatever
        the others would give.
    """

    name: str
    ring: tuple[Protocol, ...]
    tree: tuple[Protocol, ...]
    small: int
    in_switch: Mapping[int, float]
    switch_latency: float
    host: float
    source: Figure
    measured: Mapping[str, Protocol] = field(default_factory=dict)


def _protocols(
    base: tuple[float, ...],
    nvlink: tuple[float, ...],
    pcie: tuple[float, ...],
    net: tuple[float, ...],
    shares: tuple[float, ...],
) -> tuple[Protocol, ...]:
    """NCCL's three protocols, from columns of microseconds."""
    names = ("LL", "LL128", "Simple")
    return tuple(
        Protocol(name, b * 1e-6, {"nvlink": n * 1e-6, "pcie": p * 1e-6, "net": w * 1e-6}, share)
        for name, b, n, p, w, share in zip(names, base, nvlink, pcie, net, shares, strict=True)
    )


NCCL = Transport(
    name="NCCL",
    ring=_protocols((6.6, 14.0, 8.4), (0.6, 1.9, 3.4), (1.0, 2.5, 5.7), (2.7, 4.0, 14.0),
                    (0.5, 0.92, 1.0)),
    tree=_protocols((6.8, 14.0, 8.4), (0.6, 1.25, 4.0), (1.0, 1.9, 4.0), (5.0, 8.5, 14.0),
                    (1 / 3.8, 7 / 9, 0.92)),
    small=16384,
    in_switch={90: 0.85, 100: 0.74},
    switch_latency=25e-6,
    host=0.0,
    source=Figure(math.nan, "github.com/NVIDIA/nccl at 5067397c, src/graph/tuning.cc: default "
                  "tuner constants (baseLatencies, hwLatencies, nvlsEfficiency) and the shares of "
                  "bandwidth that ncclTopoTuneModel gives each protocol; src/enqueue.cc: "
                  "NCCL_P2P_LL_THRESHOLD", "2026-06"),
)  # fmt: skip
"""NCCL, as its own tuner models it. RCCL has the same structure and is priced alike."""
