from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ringlab.numerics import AttentionState, attend, attend_backward
from ringlab.operators import UnpricedOperator, register, work
from ringlab.timeline import Work

on_both = pytest.mark.parametrize("device", ["cpu", "meta"])


class Works(TorchDispatchMode):
    """Notes the work of every operator that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, Work | None]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.found.append((str(func), work(func, args, kwargs, result)))
        return result


def works(call: Callable[[], Any]) -> list[Work | None]:
    with Works() as mode:
        call()
    return [found for _, found in mode.found]


def operands(device: str, queries: int = 48, keys: int = 32) -> tuple[torch.Tensor, ...]:
    q = torch.ones(2, 6, queries, 16, device=device, dtype=torch.bfloat16)
    k = torch.ones(2, 3, keys, 16, device=device, dtype=torch.bfloat16)
    return q, k, k.clone()


@on_both
def test_a_full_tile_costs_four_flops_a_pair_head_and_dimension(device: str) -> None:
    q, k, v = operands(device)
    (found,) = works(lambda: attend(q, k, v))
    assert found is not None
    assert found.flops == 4 * 16 * 6 * 2 * 48 * 32
    assert (found.queries, found.keys, found.head_dim, found.causal) == (48, 32, 16, False)
    assert found.bytes_read == 2 * (2 * 6 * 48 * 16 + 2 * 2 * 3 * 32 * 16)
    assert found.bytes_written == 2 * 6 * 48 * (16 * 4 + 8)


@on_both
def test_a_causal_tile_counts_only_its_triangle(device: str) -> None:
    q, k, v = operands(device, 32)
    (found,) = works(lambda: attend(q, k, v, causal=True))
    assert found is not None
    assert found.flops == 4 * 16 * 6 * 2 * (32 * 33 // 2)
    assert found.causal


def test_a_mask_counts_the_pairs_that_it_allows() -> None:
    q, k, v = operands("cpu")
    mask = torch.zeros(48, 32, dtype=torch.bool)
    mask[:5, :7] = True
    found = next(w for w in works(lambda: attend(q, k, v, mask=mask)) if w and w.flops)
    assert found.flops == 4 * 16 * 6 * 2 * 35


@on_both
def test_backward_costs_two_and_a_half_times_forward(device: str) -> None:
    q, k, v = operands(device)
    state = attend(q, k, v)
    out = state.out.to(q.dtype)
    (found,) = works(lambda: attend_backward(out, q, k, v, out, state.lse))
    assert found is not None
    assert found.kind == "attention backward"
    assert found.flops == 10 * 16 * 6 * 2 * 48 * 32


def test_a_merge_costs_the_bytes_of_two_states_read_and_one_written() -> None:
    a, b = (AttentionState.empty(1, 2, 8, 4) for _ in range(2))
    found = [w for w in works(lambda: a.merge_(b)) if w and w.kind == "merge"]
    one = 8 * 2 * (4 * 4 + 8)
    assert [(w.bytes_read, w.bytes_written) for w in found] == [(2 * one, one)]


def test_the_fused_operator_that_torch_counts_as_nothing_has_its_flops() -> None:
    q, k, v = (torch.ones(1, 2, 64, 16) for _ in range(3))
    sdpa = torch.nn.functional.scaled_dot_product_attention
    found = [w for w in works(lambda: sdpa(q, k, v, is_causal=True)) if w and w.flops]
    assert [w.flops for w in found] == [4 * 16 * 2 * (64 * 65 // 2)]


@on_both
def test_a_matrix_product_costs_two_flops_a_multiply_add(device: str) -> None:
    a, b = torch.ones(5, 7, device=device), torch.ones(7, 3, device=device)
    (found,) = works(lambda: a @ b)
    assert found == Work("matmul", 2 * 5 * 7 * 3, 4 * (35 + 21), 4 * 15, "float32")
    c = torch.ones(3, device=device)
    (found,) = works(lambda: torch.addmm(c, a, b))
    assert found == Work("matmul", 2 * 5 * 7 * 3, 4 * (3 + 35 + 21), 4 * 15, "float32")


@on_both
def test_pointwise_operators_read_and_write(device: str) -> None:
    x, y = torch.ones(4, 8, device=device), torch.ones(8, device=device)
    (found,) = works(lambda: x + y)
    assert found == Work("memory", 0, 4 * (32 + 8), 4 * 32, "float32")
    (found,) = works(lambda: x.add_(y))
    assert found == Work("memory", 0, 4 * (32 + 8), 4 * 32, "float32")


@on_both
def test_a_copy_does_not_read_its_target(device: str) -> None:
    x = torch.ones(4, device=device)
    y = torch.ones(4, device=device, dtype=torch.bfloat16)
    (found,) = works(lambda: x.copy_(y))
    assert found == Work("memory", 0, 8, 16, "float32")


@on_both
def test_reductions_and_operators_in_place_read_and_write(device: str) -> None:
    x = torch.ones(4, 8, device=device)
    mask = torch.ones(4, 8, device=device, dtype=torch.bool)
    (found,) = works(lambda: x.sum())
    assert found == Work("memory", 0, 128, 4, "float32")
    (found,) = works(lambda: x.masked_fill_(mask, 0.0))
    assert found == Work("memory", 0, 128 + 32, 128, "float32")
    index = torch.zeros(2, device=device, dtype=torch.int64)
    rows = torch.ones(2, 8, device=device)
    (found,) = works(lambda: x.index_add_(0, index, rows))
    assert found is not None
    assert found.bytes_written == 128


@on_both
def test_views_and_allocations_are_free(device: str) -> None:
    x = torch.ones(4, 8, device=device)

    def views() -> None:
        x.view(8, 4).t()[1:].unsqueeze(0).expand(2, 3, 8).detach()
        torch.empty(5, device=device)
        torch.empty_like(x)

    found = works(views)
    assert len(found) >= 6
    assert {w.kind for w in found if w} == {"free"}
    assert None not in found


def test_an_operator_without_a_formula_has_no_work_until_it_is_given_one() -> None:
    x = torch.ones(4, 4)

    def svd() -> None:
        torch.linalg.svdvals(x)

    assert None in works(svd)
    operator = torch.ops.aten._linalg_svd.default
    register(operator, lambda args, kwargs, result: Work("matmul", 640, 64, 64, "float32"))
    try:
        assert Work("matmul", 640, 64, 64, "float32") in works(svd)
    finally:
        from ringlab.operators import registry

        registry._FORMULAS.pop(operator)
        registry._FOUND.pop(operator, None)


def test_the_error_of_an_unpriced_operator_says_how_to_register_it() -> None:
    error = UnpricedOperator("aten::_linalg_svd")
    assert "aten::_linalg_svd" in str(error)
    assert "register(torch.ops.aten._linalg_svd, formula)" in str(error)


def test_only_operators_can_be_registered() -> None:
    with pytest.raises(TypeError, match=r"torch\.ops\.aten\.mm\.default"):
        register(torch.mm, lambda args, kwargs, result: Work("free", 0, 0, 0, ""))
