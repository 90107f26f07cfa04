"""I: recomputed and compiled layers give the bits of plain ones; dropout is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
import torch
import torch.distributed as dist
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ringlab import RankFailed, World
from tests.faults.drawn import Problem, problems, search, two_tiers
from tests.prefill.cases import METHODS, Attend, Inputs, Step, every_method, same_bits

Mode = Literal["plain", "reentrant", "not reentrant", "compiled"]


@dataclass(frozen=True)
class Layers:
    """Some layers of attention, each recomputed in the backward or not."""

    problem: Problem
    modes: list[Mode]


layers = st.builds(
    Layers,
    problem=problems(size=st.integers(1, 5), length=st.integers(0, 24)),
    modes=st.lists(st.sampled_from(["plain", "reentrant", "not reentrant"]), min_size=1,
                   max_size=3),
)  # fmt: skip


def in_modes(problem: Problem, modes: list[Mode], given: Inputs) -> Step:
    """Layers one after the other, the output of each being the queries of the next."""
    place = dist.get_rank(), dist.get_world_size()
    q, k, v, dout = (problem.layout.shard(x, *place) for x in given)
    leaves = [x.requires_grad_() for x in (q, k, v)]

    def layer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return problem.method(q, k * 0.5, v, layout=problem.layout, **problem.options).sin()

    x = q
    for mode in modes:
        if mode == "plain":
            x = layer(x, k, v)
        elif mode == "compiled":
            x = torch.compile(layer, backend="eager")(x, k, v)
        else:
            x = checkpoint(layer, x, k, v, use_reentrant=mode == "reentrant")
    x.backward(dout)  # reentrant checkpointing takes no torch.autograd.grad
    return Step(x.detach(), *(leaf.grad for leaf in leaves))


def check_layers(drawn: Layers) -> None:
    problem, given = drawn.problem, drawn.problem.inputs()
    plain: list[Mode] = ["plain"] * len(drawn.modes)
    expected = World(problem.size, order=problem.order).run(in_modes, problem, plain, given)
    found = World(problem.size, order=problem.order).run(in_modes, problem, drawn.modes, given)
    assert all(same_bits(*pair) for pair in zip(expected, found, strict=True))


@two_tiers(few=10, many=150)
def test_any_layers_recomputed_give_the_bits_of_plain_ones(examples: int) -> None:
    search(layers, check_layers, examples)


compiled = problems(size=st.integers(1, 4), length=st.integers(1, 24))


@two_tiers(few=2, many=20)
def test_any_compiled_layer_gives_the_bits_of_a_plain_one(examples: int) -> None:
    def check(problem: Problem) -> None:
        torch.compiler.reset()
        check_layers(Layers(problem, ["compiled"]))

    search(compiled, check, examples)


@every_method
@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not-reentrant"])
def test_report_i3_dropout_in_a_recomputed_layer_is_refused_before_anything_is_sent(
    method: Attend, reentrant: bool
) -> None:
    def layer(x: Tensor) -> Tensor:
        return method(x, x, x, dropout_p=0.1)

    def recomputed() -> Tensor:
        return checkpoint(layer, torch.zeros(1, 2, 3, 4).requires_grad_(), use_reentrant=reentrant)

    world = World(2)
    with pytest.raises(RankFailed, match="does not support dropout"):
        world.run(recomputed)
    assert len(world.timeline.communication()) == 0


@pytest.mark.parametrize("name", ["dropout_p", "dropout"])
@pytest.mark.parametrize("value", [0, 0.0, 0.1, None])
def test_report_i4_dropout_is_refused_with_the_place_where_it_can_be_applied(
    name: str, value: float | None
) -> None:
    x = torch.zeros(1, 2, 3, 4)
    for method in METHODS:
        with pytest.raises(NotImplementedError, match="apply dropout outside of attention"):
            method(x, x, x, **{name: value})
