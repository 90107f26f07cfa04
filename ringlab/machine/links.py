"""Links: bytes a second in each direction, latency, and the share that messages reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ringlab.machine.figures import Figure

Wire = Literal["nvlink", "pcie", "net"]
"""How NCCL's tuner classes a link; decides on latencies."""


@dataclass(frozen=True)
class Link:
    """A link of one device; full duplex.

    Parameters
    ----------
    name : str
    wire : {"nvlink", "pcie", "net"}
    bandwidth : Figure
        Nominal bytes/s in one direction.
    efficiency : Figure
        Share of it that large messages reach.
    """

    name: str
    wire: Wire
    bandwidth: Figure
    efficiency: Figure

    @property
    def rate(self) -> float:
        """Bytes/s in one direction that a large message reaches."""
        return self.bandwidth.value * self.efficiency.value


_NCCL = "github.com/NVIDIA/nccl at 5067397c, src/graph/topo.h: {} GB/s a link of {} GB/s"
_DATE = "2026-06"


def _nvlink(generation: int, links: int, nominal: float, reached: float, date: str) -> Link:
    source = f"NVIDIA NVLink page: generation {generation}, {links} links of {nominal} GB/s a way"
    return Link(
        f"NVLink {generation}", "nvlink", Figure(links * nominal * 1e9, source, date),
        Figure(reached / nominal, _NCCL.format(reached, nominal), _DATE),
    )  # fmt: skip


def _pcie(generation: int, transfers: float, date: str) -> Link:
    source = f"PCI-SIG, PCI Express {generation}.0: {transfers} GT/s, 16 lanes, 128b/130b"
    return Link(
        f"PCIe {generation}.0 x16", "pcie",
        Figure(transfers * 1e9 * 16 / 8 * 128 / 130, source, date),
        Figure(12.0 / 15.754, "github.com/NVIDIA/nccl at 5067397c, src/graph/topo.h: 12 GB/s for "
               "PCIe 3.0 x16 of 15.75 GB/s", _DATE),
    )  # fmt: skip


def _infiniband(name: str, gigabits: int, date: str) -> Link:
    return Link(
        f"InfiniBand {name} {gigabits} Gb/s", "net",
        Figure(gigabits / 8 * 1e9, f"InfiniBand Trade Association roadmap: {name}, 4 lanes", date),
        Figure(4096 / 4122, "InfiniBand architecture: 26 bytes of headers and checksums (LRH, BTH, "
               "ICRC, VCRC) to 4096 of payload", "2022-08"),
    )  # fmt: skip


def _ethernet(gigabits: int, standard: str, date: str) -> Link:
    return Link(
        f"Ethernet {gigabits} Gb/s (RoCE v2)", "net",
        Figure(gigabits / 8 * 1e9, f"IEEE {standard}", date),
        Figure(4096 / 4178, "RoCE v2: 82 bytes (preamble and gap, Ethernet, IP, UDP, BTH, ICRC, "
               "FCS) to 4096 of payload", "2014-09"),
    )  # fmt: skip


_XGMI = "AMD Instinct MI300X data sheet: 7 links to the other GPUs, 128 GB/s both ways together"

LINKS: dict[str, Link] = {
    "nvlink3": _nvlink(3, 12, 25.0, 20.0, "2020-05"),
    "nvlink4": _nvlink(4, 18, 25.0, 20.6, "2022-03"),
    "nvlink5": _nvlink(5, 18, 50.0, 40.1, "2024-03"),
    "pcie3": _pcie(3, 8.0, "2010-11"),
    "pcie4": _pcie(4, 16.0, "2017-10"),
    "pcie5": _pcie(5, 32.0, "2019-05"),
    "xgmi": Link("Infinity Fabric", "nvlink", Figure(64e9, _XGMI, "2023-12"),
                 Figure(0.8, "no published figure found: the share that NCCL gives NVLink 3", "")),
    "ib100": _infiniband("EDR", 100, "2014-07"),
    "ib200": _infiniband("HDR", 200, "2017-11"),
    "ib400": _infiniband("NDR", 400, "2020-11"),
    "ib800": _infiniband("XDR", 800, "2023-10"),
    "eth100": _ethernet(100, "802.3ba", "2010-06"),
    "eth200": _ethernet(200, "802.3bs", "2017-12"),
    "eth400": _ethernet(400, "802.3bs", "2017-12"),
    "eth800": _ethernet(800, "802.3df", "2024-02"),
}  # fmt: skip
