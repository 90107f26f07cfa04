"""What ranks print, labelled, in the cell that runs them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Literal, TextIO

Show = Literal["ordered", "live"]

PATIENCE = 10.0
"""Seconds that a line waits at most for the ranks before it."""

HEAD, TAIL = 1 << 20, 1 << 16
"""Bytes of a rank's output in one run that are kept from its beginning and from its end."""


class Relay:
    """Passes on what the ranks of one run print.

    Parameters
    ----------
    size : int
        Number of ranks.
    show : {"ordered", "live"}
        ``"ordered"``: the text is the same in every run. The lines of rank 0 appear as it
        prints them, those of rank r as soon as all ranks below r are done, or have kept them
        waiting for `PATIENCE` seconds. ``"live"``: each line at once.
    stream : file object or None
        Where to write; None means ``sys.stdout`` as it is at that moment, which in a
        notebook is the running cell.

    Notes
    -----
    A rank that prints without end cannot fill the memory: of more than 1 MiB a run the
    middle is left out, with a line that says how much.
    """

    def __init__(self, size: int, show: Show, stream: TextIO | None) -> None:
        self._show, self._stream = show, stream
        self._voices = [_Voice(rank) for rank in range(size)]
        self._turn = 0  # every rank below it is done

    def feed(self, rank: int, data: bytes) -> None:
        """Take what a rank has printed."""
        self._voices[rank].take(data)
        self.pass_on()

    def finish(self, rank: int) -> None:
        """Note that a rank has printed its last for this run."""
        self._voices[rank].finish()
        self.pass_on()

    def close(self) -> None:
        """Pass on everything, finished or not."""
        for voice in self._voices:
            voice.finish()
        self.pass_on()

    def pass_on(self) -> None:
        """Write what may be shown by now."""
        lines = list(self._due())
        stream = self._stream or sys.stdout
        if lines and stream is not None:  # a program without a console has no stdout
            stream.write("".join(lines))
            stream.flush()

    def _due(self) -> Iterator[str]:
        overdue = time.monotonic() - PATIENCE
        for voice in self._voices:
            if self._show == "live" or voice.rank <= self._turn or voice.since < overdue:
                yield from voice.speak()
            if voice.rank == self._turn and voice.done:
                self._turn += 1

    @property
    def texts(self) -> list[str]:
        """What each rank has printed, without labels."""
        return ["".join(voice.said) for voice in self._voices]


class _Voice:
    """The output of one rank: complete lines, said or waiting to be said."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.done = False
        self.said: list[str] = []
        self.since = float("inf")  # when the oldest waiting line came
        self._waiting: list[str] = []
        self._partial = b""
        self._room = HEAD
        self._tail = bytearray()
        self._dropped = 0

    def take(self, data: bytes) -> None:
        shown, rest = data[: self._room], data[self._room :]
        self._room -= len(shown)
        *lines, self._partial = (self._partial + shown).split(b"\n")
        self._queue(lines)
        self._tail += rest
        if len(self._tail) > 2 * TAIL:
            self._dropped += len(self._tail) - TAIL
            del self._tail[:-TAIL]

    def finish(self) -> None:
        """Complete the last line, and add the end of what was too much."""
        if self._partial:
            self._queue([self._partial])
        if self._tail:
            if self._dropped:
                self._queue([f"... {self._dropped:,} bytes left out ...".encode()])
            self._queue(bytes(self._tail).removesuffix(b"\n").split(b"\n"))
        self._partial, self._tail, self._dropped, self.done = b"", bytearray(), 0, True

    def speak(self) -> Iterator[str]:
        lines, self._waiting, self.since = self._waiting, [], float("inf")
        for line in lines:
            self.said.append(line)
            yield f"[rank {self.rank}] {line}"

    def _queue(self, lines: list[bytes]) -> None:
        for line in lines:
            # A progress bar redraws its line after a carriage return: the last state counts.
            visible = line.rstrip(b"\r").rpartition(b"\r")[2]
            self._waiting.append(visible.decode(errors="replace") + "\n")
        if self._waiting:
            self.since = min(self.since, time.monotonic())
