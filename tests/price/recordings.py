"""Recordings made by hand, and random ones of programs that are right by construction."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import strategies as st

from ringlab.timeline import Event, Timeline, Work


class Maker:
    """Writes a recording, event by event, as a run would."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self.events: list[Event] = []
        self.launches = [0] * world_size
        self.pending: dict[int, list[tuple[int, str, int | None]]] = defaultdict(list)

    def compute(self, rank: int, work: Work | None, name: str = "aten::mm") -> None:
        self._add(rank, "compute", name, -1, (), None, 0, 0, work)

    def batch(
        self, rank: int, *messages: tuple[str, int, int], group: tuple[int, ...] = ()
    ) -> None:
        """Messages (kind, peer, bytes) of one launch."""
        launch = self._launch(rank)
        for kind, peer, size in messages:
            out, into = (size, 0) if kind == "send" else (0, size)
            self._add(rank, kind, kind, launch, group or self.world, peer, out, into)
            self.pending[rank].append((launch, kind, peer))

    def collective(self, name: str, size: int, group: tuple[int, ...] = ()) -> None:
        """All members call it; each sends and receives `size` bytes."""
        for rank in group or self.world:
            launch = self._launch(rank)
            self._add(rank, "collective", name, launch, group or self.world, None, size, size)
            self.pending[rank].append((launch, name, None))

    def message(self, sender: int, receiver: int, size: int) -> None:
        """A message, in launches of their own."""
        self.batch(sender, ("send", receiver, size))
        self.batch(receiver, ("recv", sender, size))

    def wait(self, rank: int) -> None:
        """Wait for everything that a rank has issued."""
        for launch, name, peer in self.pending.pop(rank, []):
            self._add(rank, "wait", name, launch, self.world, peer, 0, 0)

    def wait_all(self) -> None:
        for rank in range(self.world_size):
            self.wait(rank)

    def shift(self, size: int, step: int = 1) -> None:
        """Every rank sends to the rank `step` further on and receives from the one before."""
        for rank in range(self.world_size):
            to, source = (rank + step) % self.world_size, (rank - step) % self.world_size
            self.batch(rank, ("send", to, size), ("recv", source, size))

    @property
    def world(self) -> tuple[int, ...]:
        return tuple(range(self.world_size))

    @property
    def recording(self) -> Timeline:
        return Timeline(self.world_size, tuple(self.events))

    def _launch(self, rank: int) -> int:
        self.launches[rank] += 1
        return self.launches[rank] - 1

    def _add(self, rank: int, kind: Any, name: str, launch: int, group: tuple[int, ...],
             peer: int | None, out: int, into: int, work: Work | None = None) -> None:  # fmt: skip
        self.events.append(
            Event(rank, kind, name, launch, group, peer, out, into, (), "uint8", "here", work=work)
        )


def product(flops: int, size: int = 0) -> Work:
    """A matrix product."""
    return Work("matmul", flops, size, 0, "bfloat16")


sizes = st.integers(0, 1 << 26)
flops = st.integers(0, 10**13)


@st.composite
def recordings(draw: st.DrawFn, most: int = 6) -> Timeline:
    """A program of up to `most` ranks: computing, shifts, messages, collectives, late waits."""
    size = draw(st.integers(1, most))
    maker = Maker(size)
    actions = ["compute", "wait"] + (["shift", "message", "collective"] if size > 1 else [])
    for action in draw(st.lists(st.sampled_from(actions), max_size=12)):
        if action == "compute":
            for rank in range(size):
                maker.compute(rank, product(draw(flops), draw(sizes)))
        elif action == "wait":
            maker.wait(draw(st.integers(0, size - 1)))
        elif action == "shift":
            maker.shift(draw(sizes), draw(st.integers(1, size - 1)))
        elif action == "message":
            sender = draw(st.integers(0, size - 1))
            maker.message(sender, (sender + draw(st.integers(1, size - 1))) % size, draw(sizes))
        else:
            names = ["all_gather", "all_reduce", "reduce_scatter", "broadcast", "barrier"]
            maker.collective(draw(st.sampled_from(names)), draw(sizes))
    maker.wait_all()
    return maker.recording


machines = st.sampled_from(
    ["8x h100-nvlink", "4x2 a100-ib", "3x2 h100-eth100", "8x mi300x-xgmi", "8x a100-pcie"]
)
