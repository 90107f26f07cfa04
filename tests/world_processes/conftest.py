"""Worlds that tests share: starting one costs a quarter of a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringlab.world.processes import ProcessRunner


@pytest.fixture(scope="session")
def shared_world() -> Iterator[ProcessRunner]:
    """Three ranks for the whole session; a test that breaks them costs the next one a restart."""
    world = ProcessRunner(3, timeout=30.0)
    yield world
    world.close()


@pytest.fixture
def world(shared_world: ProcessRunner) -> ProcessRunner:
    """Three ranks that have started."""
    shared_world.run(int)
    return shared_world
