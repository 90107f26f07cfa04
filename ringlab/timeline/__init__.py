"""What happened in a run: events, and the numbers that follow from them."""

from ringlab.timeline.clock import NoClock, makespan
from ringlab.timeline.critical_path import CriticalPath, critical_path
from ringlab.timeline.events import Event, EventKind, Work
from ringlab.timeline.in_flight import peak_bytes_in_flight, peak_kv_blocks
from ringlab.timeline.lost_time import LostTime, lost_time
from ringlab.timeline.regions import current_label, region
from ringlab.timeline.steps import with_steps
from ringlab.timeline.timeline import Timeline
from ringlab.timeline.times import (
    busy,
    exposed_communication,
    flops,
    imbalance,
    overlap,
    waiting,
)
from ringlab.timeline.traffic import traffic

__all__ = [
    "CriticalPath",
    "Event",
    "EventKind",
    "LostTime",
    "NoClock",
    "Timeline",
    "Work",
    "busy",
    "critical_path",
    "current_label",
    "exposed_communication",
    "flops",
    "imbalance",
    "lost_time",
    "makespan",
    "overlap",
    "peak_bytes_in_flight",
    "peak_kv_blocks",
    "region",
    "traffic",
    "waiting",
    "with_steps",
]
