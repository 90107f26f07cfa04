"""Programs that run long on purpose, with pauses at random places, and what they must give."""

from __future__ import annotations

import random
import time

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import ZigZag, ring_attention
from tests import oracle

PRIME = 2_147_483_647
PAUSE = 0.005  # seconds at most


def blocks(world_size: int, hops: int) -> list[list[int]]:
    """What `pass_around` returns on each rank, by arithmetic alone."""
    held = [[rank + 1, 2 * rank + 1] for rank in range(world_size)]
    for hop in range(hops):
        held = [
            [(value * 31 + rank + hop) % PRIME for value in held[rank - 1]]
            for rank in range(world_size)
        ]
    return held


def pass_around(hops: int, seed: int) -> list[int]:
    """Pass a block around; in every hop one rank, drawn for it, is late.

    Each hop is posted in a way drawn for it, and mixes the block with rank and hop, so that a
    message lost, doubled, stale or out of order changes the end.
    """
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    draw = random.Random(seed)  # the same on every rank
    mine = torch.tensor([rank + 1, 2 * rank + 1])
    for hop in range(hops):
        late, pause, way = draw.randrange(size), draw.uniform(0, PAUSE), draw.randrange(3)
        if rank == late:
            time.sleep(pause)
        received = torch.empty_like(mine)
        if way < 2:
            pair = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, received, before)]
            for work in dist.batch_isend_irecv(pair[:: 1 - 2 * way]):
                work.wait()
        elif rank % 2:
            dist.recv(received, before)
            dist.send(mine, after)
        else:
            dist.send(mine, after)
            dist.recv(received, before)
        mine = (received * 31 + rank + hop) % PRIME
    return [int(value) for value in mine]


def ring(problem: tuple[Tensor, ...], calls: int, seed: int) -> list[tuple[Tensor, ...]]:
    """Call `ring_attention` and its backward again and again, with a pause before each."""
    rank, size, layout = dist.get_rank(), dist.get_world_size(), ZigZag()
    q, k, v, dout = (layout.shard(x, rank, size) for x in problem)
    draw = random.Random(seed)
    found = []
    for _ in range(calls):
        own = [x.clone().requires_grad_() for x in (q, k, v)]
        for late, pause in [(draw.randrange(size), draw.uniform(0, PAUSE)) for _ in range(2)]:
            if rank == late:
                time.sleep(pause)
        out = ring_attention(*own, layout=layout, causal=True, length=problem[0].shape[2])
        out.backward(dout)
        found.append((out.detach(), *(x.grad for x in own if x.grad is not None)))
    return found


def ring_problem(world_size: int) -> tuple[Tensor, ...]:
    """q, k, v and the gradient of out: an odd length, grouped heads, float64."""
    generator = torch.Generator().manual_seed(world_size)
    shapes = [(1, heads, 8 * world_size + 3, 8) for heads in (4, 2, 2, 4)]
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)


def assert_ring_is_right(
    problem: tuple[Tensor, ...], ranks: list[list[tuple[Tensor, ...]]]
) -> None:
    """Compare every call's out, dQ, dK and dV with the oracle."""
    q, k, v, dout = problem
    exact = oracle.attention(q, k, v, dout, causal=True)
    for call in zip(*ranks, strict=True):
        for name, shards in zip(("out", "dq", "dk", "dv"), zip(*call, strict=True), strict=True):
            whole = ZigZag().unshard(list(shards))
            torch.testing.assert_close(whole, getattr(exact, name), rtol=1e-10, atol=1e-11)
