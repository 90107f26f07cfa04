"""Few queries on many keys, as in decode: the ways that the CPU kernels take then."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ringlab.numerics import attend, cpu_flash, private_ops
from ringlab.numerics.cpu_flash import PIECE
from tests import oracle
from tests.numerics.cases import Case, case
from tests.numerics.test_memory import peak_bytes


def few(dtype: torch.dtype, *, heads: int, queries: int, keys: int = 333) -> Case:
    return case(heads=heads, kv_heads=2, queries=queries, keys=keys, dtype=dtype)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_flash, "PIECE", 1)  # as few keys as there may be, 64


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("heads", "queries"), [(2, 1), (6, 1), (6, 5), (2, 32)])
def test_keys_widened_in_pieces_give_float32_results(
    dtype: torch.dtype, heads: int, queries: int
) -> None:
    q, k, v, _ = few(dtype, heads=heads, queries=queries)
    state, exact = attend(q, k, v, kernel="cpu_flash_float32"), oracle.attention(q, k, v)
    assert oracle.error(state.out, exact.out) < 2e-6
    assert oracle.error(state.lse, exact.lse) < 1e-6


@pytest.mark.usefixtures("small_pieces")
def test_a_mask_is_cut_with_the_keys() -> None:
    q, k, v, _ = few(torch.float16, heads=2, queries=3)
    mask = torch.ones(3, 333, dtype=torch.bool)
    mask[0, 50:] = False  # only in the first piece
    mask[1, :200] = False  # not in the first pieces
    mask[2] = False
    state = attend(q, k, v, mask=mask, kernel="cpu_flash_float32")
    exact = oracle.attention(q, k, v, mask=mask)
    assert oracle.error(state.out, exact.out) < 2e-6
    assert torch.equal(state.lse[:, :, 2], torch.full((2, 2), -torch.inf, dtype=torch.float64))
    assert oracle.error(state.lse[:, :, :2], exact.lse[:, :, :2]) < 1e-6


def test_float16_keys_are_never_all_widened_at_once() -> None:
    q, k, v, _ = few(torch.float16, heads=2, queries=1, keys=150_000)
    widened = 2 * k.numel() * torch.float32.itemsize
    peak = peak_bytes(lambda: attend(q, k, v, kernel="cpu_flash_float32"))
    assert peak < 1.5 * PIECE < widened / 4


def rows_given_to_the_operator(monkeypatch: pytest.MonkeyPatch, q: Tensor, k: Tensor) -> int:
    seen, operator = [], private_ops.operator

    def watched(name: str) -> object:
        def call(*args: Tensor, **options: object) -> object:
            seen.append(args[0].shape[2])
            return operator(name)(*args, **options)

        return call

    monkeypatch.setattr(private_ops, "operator", watched)
    state = attend(q, k, k, kernel="cpu_flash")
    assert state.out.shape == q.shape
    assert oracle.error(state.out, oracle.attention(q, k, k).out) < 1e-2
    return seen[0]


@pytest.mark.parametrize(
    ("dtype", "queries", "rows"),
    [(torch.bfloat16, 1, 2), (torch.bfloat16, 2, 2), (torch.float32, 1, 1)],
)
def test_a_single_bfloat16_query_is_computed_as_two_which_takes_less_time(
    dtype: torch.dtype, queries: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, _, _ = few(dtype, heads=2, queries=queries)
    assert rows_given_to_the_operator(monkeypatch, q, k) == rows


def test_queries_that_share_memory_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, _, _ = few(torch.bfloat16, heads=2, queries=1)
    assert rows_given_to_the_operator(monkeypatch, q.expand(-1, -1, 5, -1), k) == 5
