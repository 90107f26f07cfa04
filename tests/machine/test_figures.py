from __future__ import annotations

import re

import pytest

from ringlab.machine import CHIPS, LINKS, Chip, Link
from ringlab.machine.benchmarks import Benchmark

every_chip = pytest.mark.parametrize("chip", CHIPS.values(), ids=str)
every_link = pytest.mark.parametrize("link", LINKS.values(), ids=lambda link: link.name)


@every_chip
def test_every_figure_of_a_chip_has_a_source_and_a_date(chip: Chip) -> None:
    figures = [*chip.rates.values(), chip.memory, chip.bandwidth, chip.matmul, chip.stream,
               chip.merge, chip.launch]  # fmt: skip
    for figure in figures:
        assert len(figure.source) > 10
        assert re.fullmatch(r"20\d\d-\d\d", figure.date)
    for benchmark in chip.attention.values():
        assert "arXiv:" in benchmark.source
        assert re.fullmatch(r"20\d\d-\d\d", benchmark.date)


@every_link
def test_every_figure_of_a_link_has_a_source(link: Link) -> None:
    assert len(link.bandwidth.source) > 10
    assert re.fullmatch(r"20\d\d-\d\d", link.bandwidth.date)
    assert len(link.efficiency.source) > 10
    assert 0 < link.efficiency.value <= 1


@every_chip
def test_a_factor_never_hides_in_a_peak(chip: Chip) -> None:
    for share in (chip.matmul, chip.stream, chip.merge):
        assert 0 < share.value < 1
    for benchmark in chip.attention.values():
        for curve in benchmark.curves.values():
            assert all(0 < rate < benchmark.peak for rate in curve.rates)


# Dense 16-bit peaks in TFLOP/s; data sheets print twice as much, "with sparsity".
DENSE = {"a100": 312, "h100": 989, "h200": 989, "b200": 2250, "gb200": 2500, "mi300x": 1307}


@pytest.mark.parametrize("name", DENSE)
def test_peaks_are_dense(name: str) -> None:
    assert CHIPS[name].rate("bfloat16").value == pytest.approx(DENSE[name] * 1e12, rel=0.001)


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [("nvlink3", 300), ("nvlink4", 450), ("nvlink5", 900), ("pcie5", 63), ("ib400", 50),
     ("eth100", 12.5), ("xgmi", 64)],
)  # fmt: skip
def test_a_link_has_its_rate_in_one_direction(name: str, gigabytes: float) -> None:
    assert LINKS[name].bandwidth.value == pytest.approx(gigabytes * 1e9, rel=0.001)


def test_a_dtype_without_a_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="no figure for int8; it has bfloat16"):
        CHIPS["h100"].rate("int8")


def test_the_published_speed_of_a_kernel_comes_back_at_its_own_length() -> None:
    h100 = CHIPS["h100"].attention["bfloat16"]
    for causal, length, published in ((False, 4096, 638), (True, 16384, 616), (True, 512, 292)):
        share = h100.efficiency("attention", causal, 128, length)
        assert share * h100.peak == pytest.approx(published * 1e12)


def test_efficiency_between_two_lengths_lies_between_theirs() -> None:
    h100 = CHIPS["h100"].attention["bfloat16"]
    low, middle, high = (h100.efficiency("attention", True, 128, n) for n in (1024, 1448, 2048))
    assert middle == pytest.approx((low + high) / 2, rel=1e-3)


def test_the_best_forward_of_flash_attention_4_is_71_percent_of_the_peak() -> None:
    b200 = CHIPS["b200"].attention["bfloat16"]
    assert b200.efficiency("attention", False, 128, 16384) == pytest.approx(0.71)
    assert isinstance(b200, Benchmark)
