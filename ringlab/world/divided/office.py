"""The caller's side of a divided run: starts the parts, forwards letters, notices a standstill."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

from ringlab.world.divided.messages import Assignment, Done, GivenUp, Idle
from ringlab.world.processes.launcher import command
from ringlab.world.virtual.elsewhere import Letter, Undividable


class Part:
    """One process of a divided run, as the caller knows it.

    Attributes
    ----------
    here : frozenset of int
        Its ranks.
    done : Done or None
        What it has left, once its ranks have returned.
    """

    def __init__(self, given: Assignment) -> None:
        self.here = frozenset(given.here)
        self.done: Done | None = None
        self.link, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                command("ringlab.world.divided.part", theirs.fileno()),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._forwarded, self._heard = 0, -1
        # letters wait in a queue of their own, so that a part that reads none holds up nobody
        self._letters: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._deliver, name="ringlab-letters", daemon=True).start()
        self._letters.put(given)

    @property
    def stands_still(self) -> bool:
        """Whether it has said that it cannot go on, after the last letter to it."""
        return self.done is not None or self._heard == self._forwarded

    def forward(self, letter: Letter) -> None:
        """Send a letter of a rank elsewhere; one that comes after the end is dropped."""
        if self.done is None:
            self._forwarded += 1
            self._letters.put(letter)

    def is_idle(self, heard: int) -> None:
        """Note that it waits, and how many letters it had got by then."""
        self._heard = heard

    def end(self) -> None:
        """End the process, whatever it is at."""
        self._letters.put(None)
        self._process.kill()
        self._process.wait()
        self.link.close()

    def epitaph(self) -> str:
        """How the process has ended."""
        return (
            f"the process of {len(self.here)} ranks, {min(self.here)} among them, ended by itself"
        )

    def _deliver(self) -> None:
        while (letter := self._letters.get()) is not None:
            try:
                self.link.send(letter)
            except (OSError, ValueError):  # it has ended; who reads from it will notice
                return


def run_parts(given: Sequence[Assignment]) -> list[Done]:
    """Run the parts of a world to their end.

    Parameters
    ----------
    given : sequence of Assignment
        Together they have each rank once.

    Returns
    -------
    list of Done

    Raises
    ------
    Undividable
        If a part has failed, or all of them wait for one another.
    """
    parts: list[Part] = []
    try:
        parts.extend(Part(each) for each in given)
        links = {part.link: part for part in parts}
        while pending := [part.link for part in parts if part.done is None]:
            for link in wait(pending):
                assert isinstance(link, Connection)
                _take(links[link], parts)
            if all(part.stands_still for part in parts) and not all(p.done for p in parts):
                raise Undividable("its ranks wait for one another")
        return [part.done for part in parts if part.done is not None]
    finally:
        for part in parts:
            part.end()


def _take(part: Part, parts: Sequence[Part]) -> None:
    try:
        said = part.link.recv()
    except (EOFError, OSError):
        raise Undividable(part.epitaph()) from None
    if isinstance(said, Letter):
        next(other for other in parts if said.peer in other.here).forward(said)
    elif isinstance(said, Idle):
        part.is_idle(said.heard)
    elif isinstance(said, Done):
        part.done = said
    else:
        assert isinstance(said, GivenUp)
        raise Undividable(said.reason)


def cores() -> list[int | None]:
    """The cores that this process may use; one that is nowhere where the system cannot tell."""
    return [*os.sched_getaffinity(0)] if hasattr(os, "sched_getaffinity") else [None]
