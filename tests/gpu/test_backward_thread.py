"""A backward in another thread: autograd runs that of tensors on a GPU in one of its own.

There is no line of the program on that thread's stack and no region around it, and yet what is
recorded must be the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import Tensor

from ringlab import World, ZigZag, ring_attention
from ringlab.timeline import region
from tests.conformance.programs import communication
from tests.prefill.cases import inputs

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]
SIZE, LENGTH = 2, 37
GIVEN = inputs(LENGTH, dtype=torch.float32)


class AllReduced(torch.autograd.Function):
    """Communicates in its backward, by a line of the program's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> Tensor:
        dist.all_reduce(torch.ones(3))
        return dout


def backward(out: Tensor, dout: Tensor, elsewhere: bool) -> None:
    other = threading.Thread(target=out.backward, args=(dout,))
    (other.start(), other.join()) if elsewhere else out.backward(dout)  # one line, one site


def ring(elsewhere: bool) -> None:
    place = dist.get_rank(), dist.get_world_size()
    q, k, v, dout = (ZigZag().shard(x, *place) for x in GIVEN)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    with region("step"):
        out = ring_attention(*leaves, layout=ZigZag(), causal=True, length=LENGTH)
        backward(AllReduced.apply(out), dout, elsewhere)


def scattered(elsewhere: bool) -> None:
    """Its backward is torch's alone: no line of the program anywhere."""
    x = torch.ones(3 * SIZE).requires_grad_()
    with region("step"):
        y = funcol.reduce_scatter_tensor_autograd(x, "sum", 0, dist.group.WORLD)
        backward(2 * y, torch.ones(3), elsewhere)


@pytest.fixture(scope="module")
def gloo() -> Iterator[World]:
    with World(SIZE, backend="gloo", threads=1) as world:
        yield world


@pytest.mark.parametrize("program", [ring, pytest.param(scattered, marks=pytest.mark.slow)])
def test_what_a_backward_communicates_is_recorded_the_same_from_its_own_thread(
    gloo: World, program: Callable[[bool], None]
) -> None:
    elsewhere = communication(gloo, partial(program, True))
    assert elsewhere == communication(gloo, partial(program, False))
    assert elsewhere == communication(World(SIZE), partial(program, False))
    assert {event.label for event in elsewhere} == {"step"}
    assert not any(event.site.startswith("?") for event in elsewhere)
