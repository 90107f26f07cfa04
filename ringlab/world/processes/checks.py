"""Refusals, in words, before anything is started."""

from __future__ import annotations

import sys

from ringlab.world.errors import WorldError


def options(size: int, backend: str, timeout: float, threads: int | None, show: str) -> None:
    """Refuse options of a world that make no sense, and a system that cannot run it."""
    if sys.platform == "win32":
        raise WorldError(
            "ranks as processes need fork, which Windows does not have: use the virtual world, "
            "World(size), or run in WSL."
        )
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"a world needs at least 1 rank; size is {size!r}.")
    if backend not in ("gloo", "nccl"):
        raise ValueError(f"backend {backend!r} is unknown; processes run 'gloo' or 'nccl'.")
    if show not in ("ordered", "live"):
        raise ValueError(f"show={show!r} is unknown; choose 'ordered' or 'live'.")
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads!r}; each rank needs at least 1.")
    deadline(timeout)


def deadline(timeout: float) -> None:
    """Refuse a deadline that is no positive number of seconds."""
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout!r}; it must be a positive number of seconds.")
