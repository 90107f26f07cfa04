"""What every test shares: the two tiers, the account of skips, seeds and the browser."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import settings

from tests.hardware import hardware

if TYPE_CHECKING:
    from playwright.sync_api import Browser

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background deaf to interrupts; tests send some.
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester", "tests.accounting"]

settings.register_profile("here", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


ASIDE = {"bench", "cost", "examples"}
"""Folders whose tests compute, and run beside those that start programs: it balances the two."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `tools/test_library.py` puts into the second of its two pytests."""
    for item in items:
        if ASIDE & {folder.name for folder in item.path.parents}:
            item.add_marker(pytest.mark.aside)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Start each test from one seed, so that a failure comes back when the test runs alone."""
    torch.manual_seed(0)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let virtual ranks compute with as many threads as real ones."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests that are marked ``browser``; each opens pages of its own."""
    from playwright.sync_api import sync_playwright

    path = hardware().browser
    assert path, "mark a test that asks for the browser with pytest.mark.browser"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield started
        started.close()
