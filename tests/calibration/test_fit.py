from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlab.calibration.fit import line


@given(latency=st.floats(1e-6, 1e-3), rate=st.floats(1e8, 1e11))
def test_times_on_a_line_give_the_line_back(latency: float, rate: float) -> None:
    times = {size: latency + size / rate for size in (1 << 14, 1 << 20, 1 << 24)}
    found, bandwidth = line(times)
    assert found == pytest.approx(latency, rel=1e-3)
    assert bandwidth == pytest.approx(rate, rel=1e-3)


def test_a_latency_is_never_negative() -> None:
    latency, rate = line({1: 1e-9, 1000: 2e-6, 2000: 5e-6})
    assert latency == 0.0
    assert rate > 0


def test_two_sizes_are_needed() -> None:
    with pytest.raises(ValueError, match="needs two sizes"):
        line({8: 1e-6})
    with pytest.raises(ValueError, match="took no longer"):
        line({8: 1e-6, 1 << 20: 1e-7})
