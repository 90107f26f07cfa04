"""Machines by name: ``"8x h100-nvlink"``, ``"4x8 h100-ib"``, ``"dgx h100"``, ``"nvl72"``.

A name says how many devices, or how many nodes times how many devices, then the chip and the
link: ``nvlink`` (``xgmi`` for MI300X) or ``pcie`` inside one node; ``ib``, ``ib100`` to
``ib800``, ``eth`` or ``eth100`` to ``eth800`` between nodes, one card a device. Case, spaces and
the ``x`` behind a count do not matter.
"""

from __future__ import annotations

import re

from ringlab.machine.chips import CHIPS
from ringlab.machine.links import LINKS
from ringlab.machine.machine import Machine
from ringlab.machine.topology import Topology
from ringlab.machine.transport import NCCL

_INSIDE = {"a100": "nvlink3", "h100": "nvlink4", "h200": "nvlink4", "b200": "nvlink5",
           "gb200": "nvlink5", "mi300x": "xgmi"}  # fmt: skip
_PCIE = {"a100": "pcie4", "gb200": "pcie5"}
_NETWORK = {"a100": "200", "h100": "400", "h200": "400", "b200": "400", "gb200": "400",
            "mi300x": "400"}  # fmt: skip
_DOMAIN = {"gb200": 72}
_NAMED = {
    "dgxa100": "8x a100-nvlink",
    "dgxh100": "8x h100-nvlink",
    "dgxh200": "8x h200-nvlink",
    "dgxb200": "8x b200-nvlink",
    "nvl72": "72x gb200-nvlink",
    "gb200nvl72": "72x gb200-nvlink",
}


def examples() -> tuple[str, ...]:
    """Some names, one for every kind."""
    return ("8x a100-nvlink", "8x h100-nvlink", "8x h100-pcie", "4x8 h100-ib", "16x8 h100-eth",
            "8x mi300x-xgmi", "2x8 b200-ib800", "dgx h100", "nvl72", "2x72 gb200-ib")  # fmt: skip


def find(name: str) -> Machine:
    """Find a machine by its name.

    Raises
    ------
    ValueError
        Saying which part of the name is unknown and what there is.
    """
    plain = re.sub(r"[\s_*]", "", name.lower().replace("\u00d7", "x"))
    plain = re.sub(r"[\s_*]", "", _NAMED.get(plain.replace("-", ""), plain))
    found = re.fullmatch(r"(?:(\d+)x)?(?:(\d+)x?)?([a-z][a-z0-9]*)(?:-([a-z]+\d*))?", plain)
    if found is None:
        raise _unknown(name, "it is not of the form '[NODES x] DEVICES CHIP-LINK'")
    first, second, chip, link = found.groups()
    if chip not in CHIPS:
        raise _unknown(name, f"there is no chip {chip!r}; the chips are {', '.join(CHIPS)}")
    nodes, devices = (
        (int(first), int(second)) if first and second else (1, int(first or second or 1))
    )
    if nodes < 1 or devices < 1:
        raise _unknown(name, "a count is at least 1")
    return _build(name, chip, nodes, devices, link or (_direct(chip) if nodes == 1 else "ib"))


def _build(name: str, chip: str, nodes: int, devices: int, link: str) -> Machine:
    domain = _DOMAIN.get(chip, 8)
    if devices > domain:
        raise _unknown(
            name, f"{domain} devices of a {chip} node are joined directly; for more, write "
            f"'{-(-devices // domain)}x{domain} {chip}-ib'"
        )  # fmt: skip
    own = _direct(chip)
    inside = LINKS[_INSIDE[chip]]
    if nodes == 1 and link in (own, "pcie"):
        if link == "pcie":
            inside = LINKS[_PCIE.get(chip, "pcie5")]
        topology = Topology(1, devices, inside, mesh=link == "xgmi")
        return Machine(f"{devices}x {chip}-{link}", CHIPS[chip], topology, NCCL)
    network = link + _NETWORK[chip] if link in ("ib", "eth") else link
    if network not in LINKS or LINKS[network].wire != "net":
        within = f" or {own!r} or 'pcie' within one node" if nodes == 1 else " between nodes"
        nets = ", ".join(repr(key) for key, each in LINKS.items() if each.wire == "net")
        raise _unknown(name, f"the link is {link!r}; it can be 'ib', 'eth', {nets}{within}")
    topology = Topology(nodes, devices, inside, chip == "mi300x", LINKS[network], devices)
    return Machine(f"{nodes}x{devices} {chip}-{link}", CHIPS[chip], topology, NCCL)


def _direct(chip: str) -> str:
    """What a link between two devices of a node is called in a name."""
    return "xgmi" if chip == "mi300x" else "nvlink"


def _unknown(name: str, reason: str) -> ValueError:
    shown = ", ".join(repr(each) for each in examples())
    return ValueError(f"machine {name!r} is unknown: {reason}. Names are, for example, {shown}.")
