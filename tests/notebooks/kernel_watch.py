"""A pytest plugin beside nbval: what befalls a kernel is noticed at once and never hidden.

nbval alone waits out the whole cell timeout for a kernel that has died, and marks the cells after
a timeout as expected failures. Here the cell in which a kernel dies fails within seconds, and the
cells that could not run after a timeout fail too, so that a hang costs one cell timeout.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty
from typing import Any

import pytest

GLANCE = 1.0
"""Seconds between two looks at whether the kernel lives."""


class KernelDied(RuntimeError):
    """The kernel ended while it ran a cell."""


def watched(get_message: Callable[..., Any], is_alive: Callable[[], bool]) -> Callable[..., Any]:
    """`get_message` of nbval's kernel, which looks from time to time whether that lives."""

    def get(stream: str, timeout: float | None = None) -> Any:
        until = float("inf") if timeout is None else time.monotonic() + float(timeout)
        while True:
            alive = is_alive()  # asked first, so that its last messages are still read
            try:
                left = until - time.monotonic()
                return get_message(stream, timeout=max(0.0, min(GLANCE, left)))
            except Empty:
                if not alive:
                    raise KernelDied("the kernel died while it ran this cell") from None
                if time.monotonic() >= until:
                    raise

    return get


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Any:
    """Watch the kernel of a notebook; do not run, and do not excuse, what follows a timeout."""
    notebook = item.parent
    if type(item).__module__ != "nbval.plugin" or notebook is None:
        return (yield)
    if getattr(notebook, "timed_out", False):
        pytest.fail("not run: an earlier cell of this notebook exceeded its time", pytrace=False)
    result = yield
    kernel = getattr(notebook, "kernel", None)
    if kernel is not None and "get_message" not in vars(kernel):
        kernel.get_message = watched(kernel.get_message, kernel.is_alive)
    return result
