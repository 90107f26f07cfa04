"""Timelines made by hand, so that a picture can be compared with what went into it."""

from ringlab.layout import Contiguous
from ringlab.layout.tiles import pairs
from ringlab.timeline import Event, Timeline, Work


def event(rank, kind, *, start=None, end=None, step=0, peer=None, out=0, into=0, pairs=0):
    work = Work("attention", 4 * pairs, 0, 0, "float32") if kind == "compute" else None
    return Event(
        rank=rank, kind=kind, name={"compute": "attend", "wait": "recv"}.get(kind, kind),
        launch=step, group=(0, 1), peer=peer, bytes_out=out, bytes_in=into, shape=(),
        dtype="float32", site="lesson.py:7 in my_ring", step=step, start=start, end=end, work=work,
    )  # fmt: skip


def ring(size=4, length=64, *, layout=None, pair=1e-6, message=4e-5, clocked=True):
    """A causal ring: a pair takes `pair` seconds, a message of 1 KiB takes `message`."""
    layout = layout or Contiguous()
    begin = [0.0] * size
    events = []
    for step in range(size):
        hop = step < size - 1
        ready = list(begin)
        for rank in range(size):
            done = begin[rank] + pair * pairs(
                layout, rank, (rank - step) % size, size, length, causal=True
            )
            before, after = (rank - 1) % size, (rank + 1) % size
            arrives = begin[before] + message
            if hop:
                events.append(event(rank, "send", start=begin[rank], end=begin[rank] + message,
                                    step=step, peer=after, out=1024))  # fmt: skip
                events.append(event(rank, "recv", start=begin[before], end=arrives, step=step,
                                    peer=before, into=1024))  # fmt: skip
            if done > begin[rank]:
                events.append(event(rank, "compute", start=begin[rank], end=done, step=step,
                                    pairs=round((done - begin[rank]) / pair)))  # fmt: skip
            ready[rank] = done
            if hop:
                ready[rank] = max(done, arrives)
                events.append(event(rank, "wait", start=done, end=ready[rank], step=step,
                                    peer=before))  # fmt: skip
        begin = ready
    if not clocked:
        events = [e._replace(start=None, end=None) for e in events]
    return Timeline(size, tuple(events))
