"""What the caller's process and the parts of a divided world say to each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ringlab.timeline.log import EventLog
from ringlab.world.ambient import Ambient
from ringlab.world.virtual.operations import Order


class Assignment(NamedTuple):
    """Caller to part, once: which ranks it has, and what they do.

    Attributes
    ----------
    here : tuple of int
        The ranks of this part, in order.
    size : int
        Ranks of the whole world.
    order, seed, timeout
        As in `World`.
    core : int or None
        The core that the part keeps to.
    ambient, dtype
        The caller's grad mode and so on, and its default dtype.
    sources : dict
        Text of source files that exist only in the caller: notebook cells.
    program : bytes
        The pickled function with its arguments.
    """

    here: tuple[int, ...]
    size: int
    order: Order
    seed: int
    timeout: float
    core: int | None
    ambient: Ambient
    dtype: torch.dtype
    sources: dict[str, str]
    program: bytes


class Idle(NamedTuple):
    """Part to caller: none of its ranks can go on before it gets more letters than these."""

    heard: int


class Done(NamedTuple):
    """Part to caller: its ranks have returned. `results`, pickled, are in rank order."""

    results: bytes
    events: EventLog


class GivenUp(NamedTuple):
    """Part to caller: its run has failed, or cannot be divided."""

    reason: str


Said = Any
"""A `Letter`, `Idle`, `Done` or `GivenUp`."""
