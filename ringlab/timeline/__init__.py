"""What happened in a run: events, and the numbers that follow from them."""

from ringlab.timeline.events import Event, EventKind, Work
from ringlab.timeline.timeline import Timeline

__all__ = ["Event", "EventKind", "Timeline", "Work"]
