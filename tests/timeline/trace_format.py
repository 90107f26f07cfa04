"""A check of traces against what the Trace Event Format documents, sharing no code with it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any


def check_trace(document: dict[str, Any]) -> None:
    """Assert that a trace is one that Perfetto shows as it is meant."""
    assert set(document) <= {"traceEvents", "displayTimeUnit", "otherData", "metadata"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    events = document["traceEvents"]
    for event in events:
        assert event["ph"] in "XMsf"
        assert isinstance(event["name"], str)
        assert event["name"]
        for field in ("pid", "tid"):
            assert type(event[field]) is int
        assert isinstance(event["ts"], int | float)
        assert not isinstance(event["ts"], bool)
        {"X": check_slice, "M": check_metadata, "s": check_flow, "f": check_flow}[event["ph"]](
            event
        )
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    slices = lanes_of(events)
    for lane in slices.values():
        check_nesting(lane)
    check_arrows(events, slices)


def check_slice(event: dict[str, Any]) -> None:
    assert isinstance(event["dur"], int | float)
    assert event["dur"] >= 0
    assert isinstance(event.get("cat", ""), str)
    assert isinstance(event.get("args", {}), dict)


def check_metadata(event: dict[str, Any]) -> None:
    wanted = {"process_name": ("name", str), "thread_name": ("name", str),
              "process_sort_index": ("sort_index", int),
              "thread_sort_index": ("sort_index", int)}  # fmt: skip
    field, kind = wanted[event["name"]]
    assert isinstance(event["args"][field], kind)


def check_flow(event: dict[str, Any]) -> None:
    assert isinstance(event["id"], int | str)
    assert isinstance(event["cat"], str)
    if event["ph"] == "f":
        assert event["bp"] == "e"  # to the slice that encloses it, not the next one


def nanoseconds(microseconds: float) -> int:
    """As Perfetto reads a time: rounded to whole nanoseconds."""
    return round(microseconds * 1000)


def lanes_of(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    lanes = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = nanoseconds(event["ts"])
            lanes[event["pid"], event["tid"]].append((start, start + nanoseconds(event["dur"])))
    return lanes


def check_nesting(lane: list[tuple[int, int]]) -> None:
    """Slices of one lane lie one after the other or one inside the other."""
    open_: list[int] = []
    for start, end in sorted(lane, key=lambda piece: (piece[0], -piece[1])):
        while open_ and open_[-1] <= start:
            open_.pop()
        assert not open_ or end <= open_[-1]
        open_.append(end)


def check_arrows(events: list[dict[str, Any]], slices: dict[Any, Any]) -> None:
    ends = {phase: {e["id"]: e for e in events if e["ph"] == phase} for phase in "sf"}
    assert ends["s"].keys() == ends["f"].keys()
    assert len(ends["s"]) == sum(e["ph"] == "s" for e in events)
    for number, start in ends["s"].items():
        end = ends["f"][number]
        assert start["ts"] <= end["ts"]
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])
        for event in (start, end):
            lane = slices[event["pid"], event["tid"]]
            assert any(first <= nanoseconds(event["ts"]) <= last for first, last in lane)
