"""A timeline as bars on lanes: where each event lies, with or without a clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ringlab.draw.units import bytes_text
from ringlab.timeline import Event, Timeline
from ringlab.timeline.spans import Span, length, subtract, union

Lane = Literal["compute", "send", "receive", "wait"]
LANES: tuple[Lane, ...] = ("compute", "send", "receive", "wait")

# Without a clock a step is one unit long; what it waits for comes at its end.
_WORKING = 0.86


class Bar(NamedTuple):
    """Where one event lies.

    Attributes
    ----------
    number : int
        Of the event in the timeline.
    event : Event
    lanes : tuple of str
        A collective lies on two lanes, ``"send"`` and ``"receive"``; any other event on one.
    start, end : float
        Seconds, or steps of a timeline that has no clock.
    """

    number: int
    event: Event
    lanes: tuple[Lane, ...]
    start: float
    end: float

    @property
    def length(self) -> float:
        """How long it lasts."""
        return self.end - self.start


class Bars(NamedTuple):
    """All bars of a timeline.

    Attributes
    ----------
    bars : tuple of Bar
        In the order of the events; none is empty.
    clocked : bool
        Whether `start` and `end` are seconds; otherwise they are steps.
    """

    bars: tuple[Bar, ...]
    clocked: bool

    @property
    def end(self) -> float:
        """When the last one ends."""
        return max((bar.end for bar in self.bars), default=0.0)

    def of(self, rank: int, lane: Lane) -> list[Bar]:
        """The bars of a rank on a lane."""
        return [bar for bar in self.bars if bar.event.rank == rank and lane in bar.lanes]

    def spans(self, rank: int, *lanes: Lane) -> list[Span]:
        """When a rank does what the lanes show; what overlaps is joined."""
        return union((bar.start, bar.end) for lane in lanes for bar in self.of(rank, lane))

    def time(self, rank: int, lane: Lane) -> float:
        """How long a rank does what a lane shows."""
        return length(self.spans(rank, lane))

    def exposed(self, rank: int) -> list[Span]:
        """When something of a rank is under way or waited for, and it computes nothing."""
        return subtract(self.spans(rank, "send", "receive", "wait"), self.spans(rank, "compute"))


def bars_of(timeline: Timeline) -> Bars:
    """Place the events of a timeline.

    Returns
    -------
    Bars
        With the times of the events, if all have them. Otherwise by step: step t lasts from t
        to t + 1, what a rank computes, sends and receives in it shares the time, lane by lane,
        and its waits come at the end.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    clocked = all(e.start is not None and e.end is not None for e in timeline)
    placed = _by_clock(timeline) if clocked else _by_step(timeline)
    bars = tuple(sorted(placed, key=lambda bar: bar.number))
    if not bars:
        raise ValueError("this timeline holds nothing that takes time; run a program first.")
    return Bars(bars, clocked)


def lanes_of(event: Event) -> tuple[Lane, ...]:
    """The lanes on which an event lies."""
    if event.kind == "collective":
        return ("send", "receive")
    return ("receive",) if event.kind == "recv" else (event.kind,)


def _by_clock(timeline: Timeline) -> Iterator[Bar]:
    for index, event in enumerate(timeline):
        if event.start is not None and event.end is not None and event.end > event.start:
            yield Bar(index, event, lanes_of(event), event.start, event.end)


def _by_step(timeline: Timeline) -> Iterator[Bar]:
    shared: dict[tuple[int, int, Lane], list[tuple[int, Event]]] = defaultdict(list)
    for index, event in enumerate(timeline):
        if event.work is None or event.work.kind != "free":
            shared[event.rank, event.step, lanes_of(event)[0]].append((index, event))
    for (_, step, lane), found in shared.items():
        begin = step + _WORKING if lane == "wait" else float(step)
        width = (step + 1 - begin if lane == "wait" else _WORKING) / len(found)
        for place, (index, event) in enumerate(found):
            start = begin + place * width
            yield Bar(index, event, lanes_of(event), start, start + width)


def words(event: Event) -> str:
    """What a rank does in an event, in words."""
    if event.kind == "compute":
        return f"computes {event.label or event.name}"
    if event.kind == "send":
        return f"sends {bytes_text(event.bytes_out)} to rank {event.peer}"
    if event.kind == "recv":
        return f"receives {bytes_text(event.bytes_in)} from rank {event.peer}"
    if event.kind == "collective":
        return f"is in {event.name}, {bytes_text(event.bytes_out)} out"
    return f"waits for {event.name}" + ("" if event.peer is None else f" with rank {event.peer}")


def ranks_to_draw(timeline: Timeline, ranks: Iterable[int] | None, most: int) -> tuple[int, ...]:
    """The ranks that were asked for, or all.

    Raises
    ------
    ValueError
        If one is not in the timeline, or there are more than can be read.
    """
    chosen = tuple(range(timeline.world_size) if ranks is None else ranks)
    for rank in chosen:
        if not 0 <= rank < timeline.world_size:
            raise ValueError(
                f"rank {rank} is not in this timeline; its ranks are 0 to "
                f"{timeline.world_size - 1}."
            )
    if not 0 < len(chosen) <= most:
        raise ValueError(
            f"{len(chosen)} ranks cannot be drawn; choose 1 to {most} with ranks=, for example "
            f"ranks=range({min(most, timeline.world_size)})."
        )
    return chosen
