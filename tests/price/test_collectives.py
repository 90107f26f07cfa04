from __future__ import annotations

import pytest

from ringlab.price import price
from tests.price.recordings import Maker

RATE = 18 * 20.6e9
NETWORK = 50e9 * 4096 / 4122


def seconds(name: str, sent: int, machine: str, size: int) -> float:
    maker = Maker(size)
    maker.collective(name, sent)
    return max(event.end or 0.0 for event in price(maker.recording, machine))


def test_a_large_all_gather_is_a_ring() -> None:
    chunk = 1 << 28
    expected = 8.4e-6 + 7 * 3.4e-6 + 7 * chunk / RATE
    assert seconds("all_gather", 7 * chunk, "8x h100-nvlink", 8) == pytest.approx(expected)


def test_a_small_all_gather_is_a_ring_of_low_latency() -> None:
    expected = 6.6e-6 + 7 * 0.6e-6 + 7 * 64 / (RATE / 2)
    assert seconds("all_gather", 7 * 64, "8x h100-nvlink", 8) == pytest.approx(expected)


def test_a_ring_between_nodes_goes_at_the_rate_of_the_network() -> None:
    chunk = 1 << 28
    expected = 8.4e-6 + 14 * 3.4e-6 + 14e-6 + 15 * chunk / NETWORK
    assert seconds("reduce_scatter", 15 * chunk, "2x8 h100-ib", 16) == pytest.approx(expected)


def test_a_large_all_reduce_on_hopper_is_done_in_the_switch() -> None:
    size = 1 << 30
    ring_bytes = 2 * 7 * size // 8
    expected = 25e-6 + size * 7 / 8 / (RATE * 0.85)
    assert seconds("all_reduce", ring_bytes, "8x h100-nvlink", 8) == pytest.approx(expected)


def test_a_large_all_reduce_on_ampere_is_a_ring() -> None:
    size = 1 << 30
    ring_bytes = 2 * 7 * size // 8
    expected = 8.4e-6 + 14 * 3.4e-6 + ring_bytes / (12 * 20e9)
    assert seconds("all_reduce", ring_bytes, "8x a100-nvlink", 8) == pytest.approx(expected)


def test_a_small_all_reduce_over_many_nodes_is_a_tree() -> None:
    size = 4096
    ring_bytes = 2 * 127 * size // 128
    expected = 6.8e-6 + 2 * (7 * 0.6e-6 + 4 * 5e-6) + 2 * size * 3.8 / NETWORK
    found = seconds("all_reduce", ring_bytes, "16x8 h100-ib", 128)
    assert found == pytest.approx(expected, rel=0.01)


def test_a_collective_of_one_takes_no_time() -> None:
    assert seconds("all_gather", 0, "1x h100-nvlink", 1) == 0.0


def test_a_collective_starts_when_its_last_member_has_come() -> None:
    from tests.price.recordings import product

    maker = Maker(4)
    maker.compute(3, product(10**13))
    maker.collective("barrier", 0)
    maker.wait_all()
    compute, *rest = price(maker.recording, "4x h100-nvlink")
    assert compute.end is not None
    assert all(event.end is not None and event.end > compute.end for event in rest)
