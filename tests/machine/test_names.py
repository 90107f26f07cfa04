from __future__ import annotations

import pytest

from ringlab.machine import Machine
from ringlab.machine.names import examples


@pytest.mark.parametrize("name", examples())
def test_every_example_names_a_machine_whose_own_name_finds_it_again(name: str) -> None:
    machine = Machine.named(name)
    assert Machine.named(machine.name) == machine


@pytest.mark.parametrize(
    ("name", "nodes", "per_node", "chip", "inside", "between"),
    [
        ("8x h100-nvlink", 1, 8, "H100 80GB SXM", "NVLink 4", None),
        ("8\u00d7A100", 1, 8, "A100 80GB SXM", "NVLink 3", None),
        ("4x8 h100-ib", 4, 8, "H100 80GB SXM", "NVLink 4", "InfiniBand NDR 400 Gb/s"),
        ("4 x 8 H100", 4, 8, "H100 80GB SXM", "NVLink 4", "InfiniBand NDR 400 Gb/s"),
        ("DGX H100", 1, 8, "H100 80GB SXM", "NVLink 4", None),
        ("NVL72", 1, 72, "B200 in GB200 NVL72", "NVLink 5", None),
        ("2x8 a100-eth100", 2, 8, "A100 80GB SXM", "NVLink 3", "Ethernet 100 Gb/s (RoCE v2)"),
        ("8x a100-pcie", 1, 8, "A100 80GB SXM", "PCIe 4.0 x16", None),
        ("h200", 1, 1, "H200 141GB SXM", "NVLink 4", None),
        ("1x4 h100-ib", 1, 4, "H100 80GB SXM", "NVLink 4", "InfiniBand NDR 400 Gb/s"),
    ],
)
def test_a_name_says_nodes_devices_chip_and_links(
    name: str, nodes: int, per_node: int, chip: str, inside: str, between: str | None
) -> None:
    machine = Machine.named(name)
    topology = machine.topology
    assert (topology.nodes, topology.per_node, machine.chip.name) == (nodes, per_node, chip)
    assert topology.inside.name == inside
    assert (topology.between.name if topology.between else None) == between


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("8x tpu", "no chip 'tpu'"),
        ("16x h100-nvlink", "2x8 h100-ib"),
        ("4x8 h100-nvlink", "link is 'nvlink'"),
        ("8x h100-xgmi", "link is 'xgmi'"),
        ("0x8 h100-ib", "at least 1"),
        ("h100 h100 -", "not of the form"),
        ("", "not of the form"),
    ],
)
def test_an_unknown_name_is_refused_with_what_there_is(name: str, part: str) -> None:
    with pytest.raises(ValueError, match=part) as refusal:
        Machine.named(name)
    assert "8x h100-nvlink" in str(refusal.value)
