"""What the recorder costs a program on real ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

import pytest
import torch
import torch.distributed as dist

from ringlab import World
from ringlab.numerics import attend

pytestmark = pytest.mark.processes

HOPS = 100


def bound(original: Callable[..., object]) -> Callable[..., object]:
    """A method of Python, since torch's own do not bind when they are put back into a class."""
    return lambda self, *args, **options: original(self, *args, **options)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Torch's own methods, without the hooks around them."""
    hooked = {
        (owner, name): method
        for owner in (dist.ProcessGroup, dist.Work)
        for name, method in vars(owner).items()
        if hasattr(method, "__wrapped__")
    }
    assert len(hooked) > 10
    for (owner, name), method in hooked.items():
        setattr(owner, name, bound(method.__wrapped__))
    try:
        yield
    finally:
        for (owner, name), method in hooked.items():
            setattr(owner, name, method)


def seconds_a_hop() -> float:
    """CPU time of the thread that runs the program; the transport has its own."""
    rank, size = dist.get_rank(), dist.get_world_size()
    held, got = torch.zeros(8), torch.zeros(8)
    began = time.thread_time()
    for _ in range(HOPS):
        hop = [
            dist.P2POp(dist.isend, held, (rank + 1) % size),
            dist.P2POp(dist.irecv, got, (rank - 1) % size),
        ]
        for work in dist.batch_isend_irecv(hop):
            work.wait()
    return (time.thread_time() - began) / HOPS


def seconds_of(step: Callable[[], object]) -> float:
    began = time.thread_time()
    step()
    return time.thread_time() - began


def cost_and_step() -> tuple[float, float]:
    """Seconds that recording adds to a hop, and that a step of an 8k ring on two ranks takes."""
    torch.set_num_threads(1)
    q, k, v = torch.randn(3, 1, 4, 4096, 64)
    seconds_a_hop()
    recorded, plain = [], []
    for _ in range(7):
        recorded.append(seconds_a_hop())
        with unrecorded():
            plain.append(seconds_a_hop())
    return median(recorded) - median(plain), seconds_of(lambda: attend(q, k, v))


def test_recording_costs_less_than_two_percent_of_a_ring():
    with World(2, backend="gloo") as world:
        for cost, step in world.run(cost_and_step):
            assert 0 < cost < 0.02 * step, f"{cost * 1e6:.0f} us a hop, {step * 1e3:.0f} ms a step"
