"""What limits an operator: the longer of computing and moving, and launching it on top."""

from __future__ import annotations

import pytest

from ringlab.price.roofline import Roof


@pytest.mark.parametrize(
    ("computing", "moving", "expected"), [(2.0, 3.0, 3.5), (4.0, 3.0, 4.5), (0.0, 0.0, 0.5)]
)
def test_computing_and_moving_go_on_at_once_and_launching_comes_before(computing, moving, expected):
    assert Roof(computing, moving, 0.5).seconds == expected
