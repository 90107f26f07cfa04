"""A message to a rank that is not there is refused in every world, before anything is sent."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import RankFailed, World


def send(peer: int) -> None:
    dist.send(torch.zeros(2), peer)


def receive(peer: int) -> None:
    dist.irecv(torch.zeros(2), peer).wait()


def batch(peer: int) -> None:
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.zeros(2), peer)]):
        work.wait()


PROGRAMS = pytest.mark.parametrize("program", [send, receive, batch])
PEERS = pytest.mark.parametrize("peer", [-1, 2, 5])


@PROGRAMS
@PEERS
@pytest.mark.parametrize("order", ["stream", "host"])
def test_the_virtual_world_refuses_a_peer_outside_the_group(program, peer, order):
    with pytest.raises(RankFailed, match=rf"rank {peer} of a group that has 2 ranks, 0 to 1"):
        World(2, order=order).run(program, peer)


@pytest.mark.processes
@pytest.mark.parametrize(("program", "peer"), [(send, 5), (receive, -1), (batch, 2)])
def test_processes_refuse_a_peer_outside_the_group(program, peer):
    with (
        World(2, backend="gloo") as world,
        pytest.raises(RankFailed, match=rf"rank {peer} of a group that has 2 ranks, 0 to 1"),
    ):
        world.run(program, peer)
