"""A ring's run as steps: the block each rank holds, and the messages that leave it."""

from __future__ import annotations

from collections import defaultdict

from ringlab.draw.units import bytes_text
from ringlab.timeline import Event, Timeline

MOST_RANKS = 12

Send = tuple[int, int, int]
Step = tuple[list[int], list[Send]]


def ring_steps(timeline: Timeline) -> list[Step]:
    """For each step: the block each rank holds, and the sends ``(from, to, bytes)``.

    The k-th send over an edge is received by the k-th receive over it.
    """
    launches: list[list[list[Event]]] = []
    for rank in range(timeline.world_size):
        by_launch: dict[int, list[Event]] = defaultdict(list)
        for event in timeline.of(rank):
            if event.kind in ("send", "recv"):
                by_launch[event.launch].append(event)
        launches.append(list(by_launch.values()))
    held = list(range(timeline.world_size))
    steps: list[Step] = []
    for hop in range(max((len(own) for own in launches), default=0)):
        here = [e for own in launches if hop < len(own) for e in own[hop]]
        sends = [
            (e.rank, e.peer, e.bytes_out) for e in here if e.kind == "send" and e.peer is not None
        ]
        steps.append((list(held), sends))
        held = list(held)
        for e in here:
            if e.kind == "recv" and e.peer is not None:
                held[e.rank] = steps[-1][0][e.peer]
    if steps:
        steps.append((held, []))
    return steps


def checked_steps(timeline: Timeline) -> list[Step]:
    """The same, of a run that can be drawn.

    Raises
    ------
    ValueError
        If there are more than 12 ranks, or no message.
    """
    world = timeline.world_size
    if world > MOST_RANKS:
        raise ValueError(f"{world} ranks are too many to draw; draw a run of up to {MOST_RANKS}.")
    steps = ring_steps(timeline)
    if not any(sends for _, sends in steps):
        raise ValueError("this timeline holds no point-to-point message; run a ring first.")
    return steps


def ring_finding(timeline: Timeline, steps: list[Step]) -> str:
    """What a picture of the ring shows, in one line."""
    total = {timeline.bytes_sent(rank) for rank in range(timeline.world_size)}
    most = bytes_text(max(total))
    if len(total) == 1:
        return f"{len(steps) - 1} hops carry every block past every rank; each rank sends {most}"
    return f"{len(steps) - 1} hops; the busiest rank sends {most}"


def ring_words(timeline: Timeline, steps: list[Step]) -> str:
    """What a picture of the ring shows, for who cannot see it."""
    world = timeline.world_size
    sends = sum(len(s) for _, s in steps)
    last = "; ".join(f"rank {rank} holds KV {block}" for rank, block in enumerate(steps[-1][0]))
    return (
        f"A ring of {world} ranks in {len(steps) - 1} hops. At step 0 rank r holds block KV r. "
        f"In each hop every arrow carries the block in hand to the neighbouring rank, {sends} "
        f"messages in all. At the end {last}."
    )
