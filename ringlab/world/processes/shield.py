"""Steps that an interrupt must not cut in half: starting ranks, and ending them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def shielded() -> Iterator[None]:
    """Hold back an interrupt (Ctrl-C, the stop button) until the block is over.

    Only the main thread is ever interrupted; in others this does nothing.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    held_back: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: held_back.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held_back:
            signal.raise_signal(signal.SIGINT)
