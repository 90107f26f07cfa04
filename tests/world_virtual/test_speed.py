"""Bounds on time, at least five times what is usual on a quiet laptop, in CPU seconds."""

from __future__ import annotations

import time

import pytest
import torch
import torch.distributed as dist

from benchmarks import messages
from ringlab.world import World


def fastest(times, action):
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        action()
        best = min(best, time.process_time() - start)
    return best


def test_four_ranks_start_and_stop_within_50_ms_on_a_quiet_machine():
    assert fastest(5, lambda: World(4).run(lambda: None)) < 5 * 0.05


def ring(block, hops):
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(hops):
        arriving = torch.empty_like(block)
        ops = [
            dist.P2POp(dist.isend, block, group_peer=(rank + 1) % size),
            dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        block = arriving
    return block.shape


def test_a_ring_of_128_ranks_on_meta_tensors():
    """Usual: 3 s for all 127 hops of each rank; a fifth of the hops is asked for here."""
    block = torch.empty(2, 1, 8, 8192, 128, device="meta", dtype=torch.bfloat16)
    world = World(128)
    assert fastest(1, lambda: world.run(ring, block, 26)) < 5 * 0.8
    assert world.timeline.bytes_sent(3) == 26 * 2 * 8 * 8192 * 128 * 2


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("size", "usual"), [(2, 130), (8, 150), (64, 220)])
def test_a_message_all_in(size, usual):
    """Usual, in CPU microseconds: send, receive, both waits, the record and the turn."""
    readings = [messages.hop(messages.batched, size, 1280 // size) for _ in range(3)]
    assert min(reading.cpu for reading in readings) * 1e6 < 5 * usual


def collective(hops):
    x = torch.empty(10, device="meta")
    for _ in range(hops):
        dist.all_reduce(x)


def test_collectives_of_many_ranks():
    assert fastest(1, lambda: World(128).run(collective, 10)) < 5 * 0.6


def pipeline(x):
    """Every rank waits for the one before it: chains of 128 ranks at each look for cycles."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(5):
        if rank:
            dist.recv(x, rank - 1)
        if rank < size - 1:
            dist.send(x, rank + 1)


def backwards(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(5):
        if rank < size - 1:
            dist.recv(x, rank + 1)
        if rank:
            dist.send(x, rank - 1)


def test_long_chains_of_ranks_that_wait():
    x = torch.empty(10, device="meta")
    assert fastest(1, lambda: World(128).run(pipeline, x)) < 5 * 0.5
    assert fastest(1, lambda: World(128).run(backwards, x)) < 5 * 0.5
