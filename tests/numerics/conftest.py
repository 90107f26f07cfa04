"""One thread for the small operators of these tests: on busy cores several only wait."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def always_one_thread(one_thread: None) -> None:
    """Use `one_thread` in every test."""
