"""Timelines made by hand, whose answers can be worked out on paper."""

from __future__ import annotations

from typing import Any

from ringlab.timeline import Event, Timeline, Work, with_steps


def event(rank: int, kind: Any, launch: int = -1, start: float | None = None,
          end: float | None = None, **more: Any) -> Event:  # fmt: skip
    fields: dict[str, Any] = {
        "name": kind, "group": (0, 1), "peer": None, "bytes_out": 0, "bytes_in": 0,
        "shape": (), "dtype": "float32", "site": f"ring.py:{launch + 2} in ring",
    }  # fmt: skip
    return Event(rank, kind, launch=launch, start=start, end=end, **{**fields, **more})


def compute(rank: int, start: float | None, end: float | None, name: str = "attend", **more: Any):
    return event(rank, "compute", -1, start, end, name=name, group=(), **more)


def send(rank, launch, peer, size, start=None, end=None, **more):
    return event(rank, "send", launch, start, end, peer=peer, bytes_out=size, **more)


def recv(rank, launch, peer, size, start=None, end=None, **more):
    return event(rank, "recv", launch, start, end, peer=peer, bytes_in=size, **more)


def wait(rank, launch, start=None, end=None, *, name, peer=None, **more):
    return event(rank, "wait", launch, start, end, name=name, peer=peer, **more)


def timeline(*events: Event, size: int = 2, **more: Any) -> Timeline:
    return Timeline(size, with_steps(events), **more)


def late_sender() -> Timeline:
    """Rank 1 computes for 2 s and waits; rank 0 computes for 5 s before it sends for 3 s.

    ::

        rank 0   compute 0 ........ 5  send 5 ... wait 5.5 .... 8
        rank 1   recv 0, compute 0 .. 2, wait 2 ............... 8, compute 8 . 9 (merge 8.5-9)
    """
    return timeline(
        compute(0, 0, 5),
        send(0, 0, 1, 100, 5, 8),
        wait(0, 0, 5.5, 8, name="send", peer=1),
        recv(1, 0, 0, 100, 0, 8),
        compute(1, 0, 2),
        wait(1, 0, 2, 8, name="recv", peer=0),
        compute(1, 8, 8.5, name="attend"),
        compute(1, 8.5, 9, name="merge", label="merge"),
    )


def hidden() -> Timeline:
    """Both ranks exchange 100 bytes, in 3 s, behind 4 s of compute each."""
    events = []
    for rank in (0, 1):
        other = 1 - rank
        events += [
            send(rank, 0, other, 100, 0, 3),
            recv(rank, 0, other, 100, 0, 3),
            compute(rank, 0, 4, work=Work("attention", 1000, 10, 10, "float32")),
            wait(rank, 0, 4, 4, name="send", peer=other),
            wait(rank, 0, 4, 4, name="recv", peer=other),
        ]
    return timeline(*events)


def without_clock(given: Timeline) -> Timeline:
    return Timeline(given.world_size, tuple(e._replace(start=None, end=None) for e in given))
