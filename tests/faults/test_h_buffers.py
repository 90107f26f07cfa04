"""H: tensors may lie in memory as they like; what travels is contiguous and of one dtype."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from hypothesis import strategies as st
from torch import Tensor

from ringlab import World
from tests import oracle
from tests.faults.drawn import (
    Problem,
    assert_near_float64,
    dtypes,
    problems,
    search,
    two_tiers,
)
from tests.prefill.cases import Inputs, Step, whole


@dataclass(frozen=True)
class Arranged:
    """How q, k, v and the upstream gradient lie in memory: an order of axes, gaps, an offset."""

    problem: Problem
    axes: list[tuple[int, ...]]
    gaps: list[tuple[int, ...]]


arranged = st.builds(
    Arranged,
    problem=problems(of=dtypes, size=st.integers(1, 5)),
    axes=st.lists(st.permutations(range(4)).map(tuple), min_size=4, max_size=4),
    gaps=st.lists(st.tuples(*[st.integers(1, 3)] * 4), min_size=4, max_size=4),
)


def laid_out(x: Tensor, axes: tuple[int, ...], gaps: tuple[int, ...]) -> Tensor:
    """A view with the same numbers whose memory has another order of axes, and gaps of NaN."""
    room = [x.shape[axis] * gap + 1 for axis, gap in zip(axes, gaps, strict=True)]
    memory = torch.full(room, torch.nan, dtype=x.dtype)
    view = memory[tuple(slice(1, None, gap) for gap in gaps)]
    view = view.permute([axes.index(axis) for axis in range(4)])
    view = view[tuple(slice(0, count) for count in x.shape)]
    return view.copy_(x)


def on_memory(drawn: Arranged, given: Inputs) -> tuple[Step, bool]:
    """A step on tensors that lie as drawn, and whether they are unchanged after it."""
    problem, place = drawn.problem, (dist.get_rank(), dist.get_world_size())
    shards = [problem.layout.shard(x, *place) for x in given]
    shards = [laid_out(*each) for each in zip(shards, drawn.axes, drawn.gaps, strict=True)]
    *leaves, dout = shards
    kept = [x.clone() for x in shards]
    for x in leaves:
        x.requires_grad_()
    out = problem.method(*leaves, layout=problem.layout, **problem.options)
    grads = torch.autograd.grad(out, leaves, dout)
    same = all(torch.equal(x, y) for x, y in zip(shards, kept, strict=True))
    return Step(out.detach(), *grads), same


def check_memory(drawn: Arranged) -> None:
    problem, given = drawn.problem, drawn.problem.inputs()
    parts = World(problem.size, order=problem.order).run(on_memory, drawn, given)
    assert all(unchanged for _, unchanged in parts)
    exact = oracle.attention(*given, causal=problem.causal)
    found = whole([part for part, _ in parts], problem.layout)
    assert_near_float64(found, Step(exact.out, exact.dq, exact.dk, exact.dv), problem.dtype)


@two_tiers(few=15, many=150)
def test_any_arrangement_in_memory_and_any_dtype_give_the_numbers_of_one_device(
    examples: int,
) -> None:
    search(arranged, check_memory, examples)
