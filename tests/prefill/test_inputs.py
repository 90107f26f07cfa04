"""Inputs as models have them: strided, mixed, some without gradients, every dtype."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Contiguous, Striped, World, ZigZag
from ringlab.numerics.kernel import Kernel
from ringlab.numerics.kernels import KERNELS
from tests import oracle
from tests.prefill.cases import (
    Attend,
    Inputs,
    Step,
    assert_exact,
    every_method,
    inputs,
    masked_or_not,
    run,
    same_bits,
    step,
    whole,
)


def sequence_major(x: Tensor) -> Tensor:
    """[B, H, L, D] over [B, L, H, D] memory, as a projection leaves it."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def strided_heads(x: Tensor) -> Tensor:
    """[B, H, L, D] whose head dimension has stride L."""
    return x.transpose(2, 3).contiguous().transpose(2, 3)


def every_second(x: Tensor) -> Tensor:
    """[B, H, L, D] out of a tensor twice as wide in every dimension."""
    return (
        x.repeat_interleave(2, 0)
        .repeat_interleave(2, 1)
        .repeat(1, 1, 2, 2)[::2, ::2, : x.shape[2], : x.shape[3]]
    )


ARRANGEMENTS = [sequence_major, strided_heads, every_second]


def arranged_step(
    method: Attend, given: Inputs, arrange: Callable[[Tensor], Tensor], causal: bool
) -> Step:
    """A step on tensors that lie in memory in a way of their own."""
    place = dist.get_rank(), dist.get_world_size()
    q, k, v, dout = (arrange(Striped().shard(x, *place)) for x in given)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = method(*leaves, layout=Striped(), causal=causal)
    grads = torch.autograd.grad(out, leaves, dout)
    return Step(out.detach(), *grads)


@every_method
@masked_or_not
@pytest.mark.parametrize("arrange", ARRANGEMENTS, ids=lambda f: f.__name__)
def test_report_h1_tensors_may_have_any_strides(
    method: Attend, causal: bool, arrange: Callable[[Tensor], Tensor]
) -> None:
    given = inputs(14)
    assert all(not arrange(x).is_contiguous() for x in given)
    parts = World(3).run(arranged_step, method, given, arrange, causal)
    assert_exact(whole(parts, Striped()), given, causal=causal)


def expanded_step(method: Attend, given: Inputs, weight: float) -> Step:
    """A step whose upstream gradient is one number, expanded."""
    place = dist.get_rank(), dist.get_world_size()
    leaves = [ZigZag().shard(x, *place).requires_grad_() for x in given[:3]]
    out = method(*leaves, layout=ZigZag(), causal=True)
    upstream = torch.tensor(weight, dtype=out.dtype).expand(out.shape)
    return Step(out.detach(), *torch.autograd.grad(out, leaves, upstream))


@every_method
def test_an_expanded_upstream_gradient_is_taken_as_what_it_shows(method: Attend) -> None:
    given = inputs(14)
    found = whole(World(3).run(expanded_step, method, given, 0.75), ZigZag())
    dense = given._replace(dout=torch.full_like(given.dout, 0.75))
    assert_exact(found, dense, causal=True)


def heads_from_one(method: Attend, given: Inputs) -> Step:
    """K and V expanded from one head to all by the caller, as some models do."""
    place = dist.get_rank(), dist.get_world_size()
    q, k, v, dout = (Contiguous().shard(x, *place) for x in given)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    wide = [x.expand(-1, q.shape[1], -1, -1) for x in (k, v)]
    out = method(q, *wide, causal=True)
    return Step(out.detach(), *torch.autograd.grad(out, leaves, dout))


@every_method
def test_expanded_keys_and_values_get_the_gradient_of_what_they_came_from(method: Attend) -> None:
    given = inputs(14, kv_heads=1)
    found = whole(World(3).run(heads_from_one, method, given), Contiguous())
    assert_exact(found, given, causal=True)


def partial_step(method: Attend, given: Inputs, wanted: tuple[bool, ...]) -> list[Tensor | None]:
    """A step in which only some of q, k and v require a gradient."""
    place = dist.get_rank(), dist.get_world_size()
    q, k, v, dout = (ZigZag().shard(x, *place) for x in given)
    leaves = [x.requires_grad_(need) for x, need in zip((q, k, v), wanted, strict=True)]
    method(*leaves, layout=ZigZag(), causal=True).backward(dout)
    return [x.grad for x in leaves]


@every_method
@pytest.mark.parametrize("wanted", list(itertools.product([True, False], repeat=3))[:-1], ids=str)
def test_report_b4_each_of_q_k_and_v_may_need_a_gradient_or_not(
    method: Attend, wanted: tuple[bool, ...]
) -> None:
    given = inputs(14)
    exact = oracle.attention(*given, causal=True)
    parts = World(3).run(partial_step, method, given, wanted)
    columns = zip(*parts, strict=True)
    for column, need, name in zip(columns, wanted, ("dq", "dk", "dv"), strict=True):
        if need:
            found = ZigZag().unshard(list(column))
            torch.testing.assert_close(found, getattr(exact, name), rtol=1e-12, atol=1e-12)
        else:
            assert list(column) == [None] * 3


@every_method
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_report_b12_outputs_and_gradients_have_the_dtype_of_the_inputs(
    method: Attend, dtype: torch.dtype
) -> None:
    given = inputs(14, dtype=dtype)
    for part in World(3).run(step, method, given, ZigZag(), causal=True):
        assert {tensor.dtype for tensor in part} == {dtype}


@every_method
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_the_same_inputs_give_the_same_bits(method: Attend, dtype: torch.dtype) -> None:
    given = inputs(200, dtype=dtype, head_dim=16)
    first, second = (run(method, given, 4, ZigZag(), causal=True) for _ in range(2))
    assert same_bits(first, second)


def three_layers(method: Attend, problems: list[Inputs]) -> list[Step]:
    """Three calls one after another, and only then the backwards, last first."""
    place = dist.get_rank(), dist.get_world_size()
    calls = []
    for given in problems:
        q, k, v, dout = (ZigZag().shard(x, *place) for x in given)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        calls.append((method(*leaves, layout=ZigZag(), causal=True), leaves, dout))
    steps = [
        Step(out.detach(), *torch.autograd.grad(out, leaves, dout))
        for out, leaves, dout in reversed(calls)
    ]
    return steps[::-1]


@every_method
def test_three_layers_in_a_row_do_not_disturb_each_other(method: Attend) -> None:
    problems = [inputs(11 + 6 * index, seed=index) for index in range(3)]
    parts = World(4).run(three_layers, method, problems)
    for given, layer in zip(problems, zip(*parts, strict=True), strict=True):
        assert_exact(whole(list(layer), ZigZag()), given, causal=True)


@every_method
def test_report_b2_a_remote_key_or_value_changes_the_gradients_and_they_stay_right(
    method: Attend,
) -> None:
    given = inputs(16)
    before = run(method, given, 4, Contiguous())
    k, v = given.k.clone(), given.v.clone()
    k[:, :, -1] += 1.0  # on the last rank
    v[:, :, -2] -= 1.0
    changed = given._replace(k=k, v=v)
    after = run(method, changed, 4, Contiguous())
    assert_exact(after, changed, causal=False)
    first_rank = slice(0, 4)
    for name in ("out", "dq", "dk", "dv"):
        old, new = getattr(before, name), getattr(after, name)
        assert not torch.isclose(old[:, :, first_rank], new[:, :, first_rank]).any()


@every_method
@pytest.mark.parametrize("name", ["reference", "cpu_flash"])
def test_report_b7_the_kernel_of_choice_computes_every_block(
    method: Attend, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[tuple[str, str]]()

    def counting(kernel: Kernel, way: str) -> Callable[..., object]:
        original = getattr(kernel, way)

        def called(*operands: object) -> object:
            calls[kernel.name, way] += 1
            return original(*operands)

        return called

    for kernel in KERNELS.values():
        for way in ("forward", "backward"):
            monkeypatch.setattr(kernel, way, counting(kernel, way))
    given = inputs(14)
    assert_exact(run(method, given, 3, Striped(), kernel=name), given, causal=False)
    assert calls == {(name, "forward"): 9, (name, "backward"): 9}


@every_method
def test_inputs_and_upstream_gradient_are_left_as_they_were(method: Attend) -> None:
    given = inputs(14)
    kept = [x.clone() for x in given]

    def on_one_rank() -> None:
        leaves = [x.requires_grad_() for x in given[:3]]
        method(*leaves).backward(given.dout)

    World(1).run(on_one_rank)
    assert all(torch.equal(x, y) for x, y in zip(given, kept, strict=True))
