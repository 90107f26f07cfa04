from __future__ import annotations

import pytest

from ringlab.calibration import CASES, Case, Row, measure, predict, predict_table, render
from ringlab.calibration.measure import build
from ringlab.calibration.readings import LENGTHS, Readings
from ringlab.host import cores
from ringlab.layout import Contiguous, ZigZag
from ringlab.machine import Machine
from ringlab.price import price
from tests.price.recordings import Maker

RATE = 1e11


def readings() -> Readings:
    """A machine of 100 GFLOP/s forward and half as much backward, 10 GB/s, 1 GB/s and 100 µs."""
    tiles = {}
    for length in LENGTHS:
        for causal in (False, True):
            pairs = length * (length + 1) // 2 if causal else length * length
            forward = 4 * 8 * 64 * pairs / RATE
            tiles["attention", "float32", causal, 64, length] = forward
            tiles["attention backward", "float32", causal, 64, length] = 5 * forward
    sizes = (1 << 14, 1 << 20, 1 << 24)
    messages = {
        "exchange": {size: 1e-4 + size / 1e9 for size in sizes},
        "reduce_scatter": {size: 2e-4 + size / 2.5e8 for size in sizes},
    }
    return Readings(tiles, merge=2e-10, copy=1e-10, launch=1e-6, messages=messages)


def test_a_machine_is_what_its_ranks_read() -> None:
    machine = build([readings(), readings()], 2, 1)
    kernel = machine.chip.attention["float32"]
    assert kernel.peak == pytest.approx(RATE)
    assert kernel.efficiency("attention", True, 64, 300) == pytest.approx(1.0)
    assert kernel.efficiency("attention backward", False, 64, 2048) == pytest.approx(0.5)
    assert machine.chip.bandwidth.value == pytest.approx(1e10)
    assert machine.chip.merge.value == pytest.approx(0.5)
    assert machine.topology.inside.rate == pytest.approx(1e9)
    assert machine.transport.ring[0].hops["net"] == pytest.approx(1e-4)
    assert machine.transport.host == 1.0
    assert set(machine.transport.measured) == {"reduce_scatter"}
    assert machine.transport.measured["reduce_scatter"].share == pytest.approx(0.25)


def test_a_collective_that_was_measured_is_priced_as_it_was() -> None:
    machine = build([readings(), readings()], 2, 1)
    maker = Maker(2)
    maker.collective("reduce_scatter", 1 << 20)
    (first, second) = price(maker.recording, machine)
    assert first.end == second.end == pytest.approx(2e-4 + (1 << 20) / 2.5e8)


def test_a_prediction_adds_up_compute_and_messages_where_nothing_overlaps() -> None:
    machine = build([readings(), readings()], 2, 1)
    case = Case("ring", Contiguous(), 4096, "float32", causal=False)
    attention = 2 * 4 * 8 * 64 * 2048 * 2048 / RATE
    state = 8 * 2048 * (64 * 4 + 8)
    kv = 2 * 8 * 2048 * 64 * 4
    merge, message, pack = 3 * state * 2e-10, 1e-4 + kv / 1e9, 2 * kv * 1e-10
    launches = (2 + 7 + 2) * 1e-6
    expected = attention + merge + message + pack + launches
    assert predict(case, machine) == pytest.approx(expected, rel=0.001)


def test_more_ranks_than_cores_are_not_predicted() -> None:
    many = cores() + 1
    with pytest.raises(ValueError, match="take turns on a core are not predictable"):
        measure(many, 1)
    with pytest.raises(ValueError, match="take turns on a core"):
        predict_table([Case("ring", ZigZag(), 64, "float32", ranks=1, threads=many)])


def test_the_default_cases_cover_what_they_should() -> None:
    assert len(CASES) >= 12
    for name in ("method", "dtype", "causal", "backward", "ranks", "head_dim", "kv_heads"):
        assert len({getattr(case, name) for case in CASES}) >= 2
    assert len({type(case.layout) for case in CASES}) == 3
    assert len(set(CASES)) == len(CASES)


def test_the_table_shows_every_case_and_the_median_error() -> None:
    rows = [Row(case, 1.1, 1.0) for case in CASES[:2]] + [Row(CASES[2], 0.5, 1.0)]
    text = render(rows).splitlines()
    assert len(text) == 5
    assert "1100.0 ms" in text[1]
    assert "+10.0%" in text[1]
    assert "-50.0%" in text[3]
    assert text[-1] == "median error 10.0% over 3 cases"


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_this_machine_can_be_measured_and_a_run_on_it_predicted() -> None:
    case = Case("ring", ZigZag(), 1024, "float32", ranks=1, threads=1)
    (row,) = predict_table([case], repeats=3)
    # A bound for a machine that does something else meanwhile; `ringlab bench --predict` prints
    # what the error is.
    assert 1 / 20 < row.predicted / row.measured < 20
    assert isinstance(Machine.measure(1), Machine)
