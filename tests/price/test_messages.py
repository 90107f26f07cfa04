from __future__ import annotations

from dataclasses import replace

import pytest

from ringlab.machine import Machine
from ringlab.operators import UnpricedOperator
from ringlab.price import price
from ringlab.timeline import Timeline
from tests.price.recordings import Maker, product

MB = 1 << 20


def seconds(recording: Timeline, machine: Machine | str) -> float:
    return max(event.end or 0.0 for event in price(recording, machine))


def one_message(size: int, receiver: int = 1) -> Maker:
    maker = Maker(16)
    maker.message(0, receiver, size)
    return maker


def test_a_large_message_takes_its_latency_and_its_bytes_at_the_rate_of_its_link() -> None:
    inside = 8.4e-6 + 3.4e-6 + 64 * MB / (18 * 20.6e9)
    assert seconds(one_message(64 * MB).recording, "2x8 h100-ib") == pytest.approx(inside)
    between = 8.4e-6 + 14e-6 + 64 * MB / (50e9 * 4096 / 4122)
    assert seconds(one_message(64 * MB, 8).recording, "2x8 h100-ib") == pytest.approx(between)


def test_a_small_message_goes_by_the_protocol_of_low_latency() -> None:
    expected = 6.6e-6 + 0.6e-6 + 1024 / (18 * 20.6e9 / 2)
    assert seconds(one_message(1024).recording, "2x8 h100-ib") == pytest.approx(expected)


def test_two_messages_over_one_card_share_it() -> None:
    machine = Machine.named("2x8 h100-ib")
    shared = replace(machine, topology=replace(machine.topology, cards=4))
    alone, both = one_message(64 * MB, 8), one_message(64 * MB, 8)
    both.message(1, 9, 64 * MB)
    rate = 50e9 * 4096 / 4122
    extra = seconds(both.recording, shared) - seconds(alone.recording, shared)
    assert extra == pytest.approx(64 * MB / rate)
    assert seconds(both.recording, machine) == pytest.approx(seconds(alone.recording, machine))


def test_a_small_message_beside_a_large_one_is_done_earlier() -> None:
    maker = Maker(8)
    maker.batch(0, ("send", 1, 64 * MB), ("send", 2, MB))
    maker.batch(1, ("recv", 0, 64 * MB))
    maker.batch(2, ("recv", 0, MB))
    large, _, _, small = price(maker.recording, "8x h100-nvlink")
    rate = 18 * 20.6e9
    assert small.end == pytest.approx(11.8e-6 + 2 * MB / rate)
    assert large.end == pytest.approx(11.8e-6 + 65 * MB / rate)


def test_hops_that_follow_one_another_do_not_share_their_ports() -> None:
    ring, hop = Maker(4), Maker(4)
    for _ in range(3):
        ring.shift(64 * MB)
        ring.wait_all()
    hop.shift(64 * MB)
    on = "4x h100-nvlink"
    assert seconds(ring.recording, on) == pytest.approx(3 * seconds(hop.recording, on))


def test_links_are_full_duplex() -> None:
    both = Maker(2)
    both.shift(64 * MB)
    alone = Maker(2)
    alone.message(0, 1, 64 * MB)
    on = "2x h100-nvlink"
    assert seconds(both.recording, on) == pytest.approx(seconds(alone.recording, on))


def test_a_mesh_gives_every_pair_its_own_link() -> None:
    maker = Maker(8)
    for receiver in range(1, 8):
        maker.message(0, receiver, 64 * MB)
    first = Maker(8)
    first.message(0, 1, 64 * MB)
    parallel = Maker(8)
    parallel.batch(0, *(("send", receiver, 64 * MB) for receiver in range(1, 8)))
    for receiver in range(1, 8):
        parallel.batch(receiver, ("recv", 0, 64 * MB))
    on = "8x mi300x-xgmi"
    one = seconds(first.recording, on)
    assert seconds(parallel.recording, on) == pytest.approx(one)
    # Unbatched sends of one group follow one another.
    assert seconds(maker.recording, on) == pytest.approx(7 * one)


def test_a_message_beside_compute_costs_only_what_the_compute_does_not_hide() -> None:
    for flops, exposed in ((10**14, False), (10**9, True)):
        maker = Maker(2)
        maker.shift(64 * MB)
        for rank in (0, 1):
            maker.compute(rank, product(flops))
        maker.wait_all()
        priced = price(maker.recording, "2x h100-nvlink")
        waited = [e.end - e.start for e in priced if e.kind == "wait" and e.end and e.start]
        assert (max(waited) > 0) == exposed


def test_a_transport_that_needs_the_cores_hides_nothing() -> None:
    machine = Machine.named("2x h100-nvlink")
    cpu = replace(machine, transport=replace(machine.transport, host=1.0))
    maker = Maker(2)
    maker.shift(64 * MB)
    for rank in (0, 1):
        maker.compute(rank, product(10**12))
    maker.wait_all()
    message = Maker(2)
    message.shift(64 * MB)
    computing = 10**12 / (989.4e12 * 0.8) + 0.9e-6
    alone = seconds(message.recording, machine)
    assert seconds(maker.recording, cpu) == pytest.approx(computing + alone)
    assert seconds(maker.recording, machine) == pytest.approx(max(computing, alone))


def test_a_message_waits_for_the_compute_that_was_issued_before_it() -> None:
    maker = Maker(2)
    maker.compute(0, product(10**12))
    maker.message(0, 1, MB)
    maker.wait_all()
    compute, send, recv, *waits = price(maker.recording, "2x h100-nvlink")
    assert send.start == compute.end
    assert recv.start == 0.0
    assert recv.end == send.end
    assert {wait.end for wait in waits} == {send.end}


def test_an_operator_without_a_formula_is_an_error_that_names_it() -> None:
    maker = Maker(1)
    maker.compute(0, None, "aten::_linalg_svd")
    with pytest.raises(UnpricedOperator, match="aten::_linalg_svd has no formula"):
        price(maker.recording, "1x h100-nvlink")


def test_a_message_with_one_end_has_no_price() -> None:
    maker = Maker(2)
    maker.batch(0, ("send", 1, 8))
    with pytest.raises(ValueError, match="send of rank 0 at here has no counterpart"):
        price(maker.recording, "2x h100-nvlink")


def test_a_machine_with_too_few_devices_is_refused() -> None:
    with pytest.raises(ValueError, match="16 ranks and 8x h100-nvlink 8 devices"):
        price(Maker(16).recording, "8x h100-nvlink")
