"""How often Python looks for cycles of garbage while ranks run."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

PER_RANK = 50
"""New objects a rank. Those of its messages live until the next hop and are no cycles; at Python's
usual 700 for all ranks together, the collector would look at them again and again."""


@contextlib.contextmanager
def seldom(ranks: int) -> Iterator[None]:
    """Let the collector begin only when that many ranks have made their share of new objects.

    A collector that is off stays off, one that begins later still is left alone, and what the
    program chooses inside remains.
    """
    first, *older = gc.get_threshold()
    if not 0 < first < PER_RANK * ranks:
        yield
        return
    chosen = (PER_RANK * ranks, *older)
    gc.set_threshold(*chosen)
    try:
        yield
    finally:
        if gc.get_threshold() == chosen:
            gc.set_threshold(first, *older)
