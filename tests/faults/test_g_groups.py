"""G: a ring is any ranks in any order; peers are ranks of the group, and nothing leaves it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
import torch.distributed as dist
from hypothesis import strategies as st
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from ringlab import Layout, World, ring_attention
from tests import oracle
from tests.faults.drawn import Problem, problems, search, two_tiers
from tests.prefill.cases import (
    Inputs,
    Step,
    assert_exact,
    every_layout,
    inputs,
    step,
    whole,
)


@dataclass(frozen=True)
class Rings:
    """Ranks of a world in several rings, each with a problem of its own; some are in none."""

    world: int
    rings: list[tuple[int, ...]]
    problems: list[Problem]


@st.composite
def several_rings(draw: st.DrawFn) -> Rings:
    world = draw(st.integers(1, 8))
    ranks, rings = list(draw(st.permutations(range(world)))), []
    while ranks and len(rings) < 3:
        count = draw(st.integers(1, len(ranks)))
        rings.append(tuple(ranks[:count]))
        ranks = ranks[count:]
    each = [draw(problems(size=st.just(len(ring)))) for ring in rings]
    return Rings(world, rings, each)


def in_own_ring(drawn: Rings) -> Step | None:
    """A step in the ring that this rank belongs to, on that ring's own data."""
    groups = [dist.new_group(list(ring), sort_ranks=False) for ring in drawn.rings]
    for ring, group, problem in zip(drawn.rings, groups, drawn.problems, strict=True):
        if dist.get_rank() in ring:
            options = {**problem.options, "group": group}
            return step(problem.method, problem.inputs(), problem.layout, **options)
    return None


def check_rings(drawn: Rings) -> None:
    world = World(drawn.world, order=drawn.problems[0].order)
    found = world.run(in_own_ring, drawn)
    home = {rank: ring for ring in drawn.rings for rank in ring}
    for ring, problem in zip(drawn.rings, drawn.problems, strict=True):
        joined = whole([found[rank] for rank in ring], problem.layout)
        assert_exact(joined, problem.inputs(), causal=problem.causal)
    for event in world.timeline.communication():
        assert event.group == home[event.rank]
        assert event.peer is None or event.peer in event.group


@two_tiers(few=10, many=150)
def test_any_rings_side_by_side_compute_their_own_and_stay_apart(examples: int) -> None:
    search(several_rings(), check_rings, examples)


def heads_for_tokens(x: Tensor, shares: list[int], group: dist.ProcessGroup) -> Tensor:
    """[B, H, L, D] to [B, H / W, sum of L, D]: a rank of the group gives tokens and gets heads."""
    parts = [part.contiguous() for part in x.chunk(group.size(), dim=1)]
    got = [x.new_empty((x.shape[0], parts[0].shape[1], share, x.shape[3])) for share in shares]
    dist.all_to_all(got, parts, group=group)
    return torch.cat(got, dim=2)


def heads_and_ring(given: Inputs, layout: Layout, inner: int) -> tuple[Tensor, list[int], int]:
    """Tokens are dealt to the ring first; each share is cut among ranks that trade them for heads.

    The ranks of the ring's share then hold its tokens in the order in which the layout has them.
    """
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size // inner, inner), mesh_dim_names=("ring", "heads"))
    ring, heads = mesh.get_group("ring"), mesh.get_group("heads")
    length = given.q.shape[2]
    place = layout.positions(ring.rank(), ring.size(), length)
    cut = place.tensor_split(inner)
    shares = [len(part) for part in cut]
    mine = (x[:, :, cut[heads.rank()]] for x in given[:3])
    q, k, v = (heads_for_tokens(x, shares, heads) for x in mine)
    out = ring_attention(q, k, v, layout=layout, causal=True, group=ring, length=length)
    return out, place.tolist(), rank


@every_layout
@pytest.mark.parametrize("length", [7, 32])
def test_report_g5_a_share_of_the_ring_is_cut_among_the_ranks_that_trade_tokens_for_heads(
    layout: Layout, length: int
) -> None:
    given = inputs(length, heads=4, kv_heads=2)
    want = oracle.attention(*given[:3], causal=True).out
    for out, place, rank in World(4).run(heads_and_ring, given, layout, 2):
        assert place == sorted(place)
        heads = slice(2 * (rank % 2), 2 * (rank % 2) + 2)
        torch.testing.assert_close(out, want[:, heads][:, :, place], rtol=0, atol=1e-12)
