"""What torch's profiler saw on a rank, put on the clock of a timeline."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringlab.timeline.timeline import Timeline

FIRST_LANE = 1000
"""Lanes of a profile stand below those of the timeline."""


def profile_events(
    timeline: Timeline, rank: int, path: str | os.PathLike[str]
) -> list[dict[str, Any]]:
    """The slices of a profile, as trace events of a rank on the timeline's clock.

    Parameters
    ----------
    timeline : Timeline
        Of real ranks: it knows when it began.
    rank : int
        The rank that was profiled.
    path : str or PathLike
        What ``torch.profiler.profile(...).export_chrome_trace(path)`` wrote there.

    Returns
    -------
    list of dict
        CPU operators, annotations and, on GPUs, kernels and copies; each thread or stream
        of the profile is a lane of the rank.

    Raises
    ------
    ValueError
        If the timeline has no beginning in time, or the file is no trace of torch's profiler.
    """
    if timeline.began is None:
        raise ValueError(
            "only a timeline recorded on real ranks knows at what time of day it began, which is "
            "what a profile is placed by."
        )
    if not 0 <= rank < timeline.world_size:
        raise ValueError(f"rank {rank} is not in this timeline of {timeline.world_size} ranks.")
    try:
        profile = json.loads(Path(path).read_text(encoding="utf-8"))
        base = profile["baseTimeNanoseconds"]
        slices = [event for event in profile["traceEvents"] if event.get("ph") == "X"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{os.fspath(path)} is no trace of torch.profiler's export_chrome_trace."
        ) from None
    shift = base / 1e3 - timeline.began * 1e6
    lanes: dict[tuple[object, object], int] = {}
    made: list[dict[str, Any]] = []
    for event in slices:
        thread = event.get("pid"), event.get("tid")
        if thread not in lanes:
            lanes[thread] = FIRST_LANE + len(lanes)
            name = f"profiler: {thread[0]} {thread[1]}"
            made.append({"ph": "M", "ts": 0, "pid": rank, "tid": lanes[thread],
                         "name": "thread_name", "args": {"name": name}})  # fmt: skip
        made.append({**event, "ts": event["ts"] + shift, "pid": rank, "tid": lanes[thread]})
    return made
