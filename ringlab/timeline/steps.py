"""The step of each event: how many launches its rank had waited for when it began."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ringlab.timeline.events import Event


def with_steps(events: Iterable[Event]) -> tuple[Event, ...]:
    """Fill in `step`, from the launches and the waits that the events hold.

    Parameters
    ----------
    events : iterable of Event
        In an order in which those of one rank stand as they began.

    Returns
    -------
    tuple of Event

    Notes
    -----
    A launch has been waited for when each of its operations has. So in a ring of one batch a
    step, what is computed and sent in step t has step t, and so have the waits that end it.
    An operation that runs again after it was waited for does not count twice.
    """
    parts: Counter[tuple[int, int]] = Counter()  # operations of a launch not waited for yet
    steps: defaultdict[int, int] = defaultdict(int)
    numbered = []
    for event in events:
        numbered.append(event._replace(step=steps[event.rank]))
        launch = event.rank, event.launch
        if event.kind in ("send", "recv", "collective"):
            parts[launch] += 1
        elif event.kind == "wait" and parts[launch] > 0:
            parts[launch] -= 1
            steps[event.rank] += parts[launch] == 0
    return tuple(numbered)
