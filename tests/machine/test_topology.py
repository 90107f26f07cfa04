from __future__ import annotations

from dataclasses import replace

import pytest

from ringlab.machine import Machine


def test_inside_a_node_a_message_crosses_two_ports_of_the_inner_link() -> None:
    link, ports = Machine.named("4x8 h100-ib").topology.path(9, 15)
    assert link.name == "NVLink 4"
    assert ports == (("out", 9, 0), ("in", 15, 0))


def test_between_nodes_it_crosses_a_card_on_each_side() -> None:
    link, ports = Machine.named("4x8 h100-ib").topology.path(7, 8)
    assert link.name == "InfiniBand NDR 400 Gb/s"
    assert ports == (("sends", 0, 7), ("receives", 1, 0))


def test_devices_share_cards_evenly_where_there_are_fewer() -> None:
    topology = replace(Machine.named("2x8 h100-ib").topology, cards=2)
    cards = [topology.path(rank, 8)[1][0] for rank in range(8)]
    assert [card for _, _, card in cards] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_mesh_has_a_link_of_its_own_for_each_pair() -> None:
    topology = Machine.named("8x mi300x-xgmi").topology
    assert topology.path(0, 1)[1] != topology.path(0, 2)[1]
    assert topology.path(0, 1)[1] != topology.path(1, 0)[1]


def test_a_faster_machine_has_only_what_was_asked_for_faster() -> None:
    machine = Machine.named("2x8 h100-ib")
    faster = machine.faster(links=2.0)
    assert faster.topology.inside.rate == 2 * machine.topology.inside.rate
    assert faster.topology.between is not None
    assert machine.topology.between is not None
    assert faster.topology.between.rate == 2 * machine.topology.between.rate
    assert faster.chip == machine.chip
    with pytest.raises(ValueError, match="positive"):
        machine.faster(links=0.0)
