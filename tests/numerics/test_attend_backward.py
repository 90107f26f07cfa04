"""Gradients of blocks from the final output and LSE."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ringlab.numerics import AttentionState, attend, attend_backward
from ringlab.numerics.cpu_flash import CpuFlash
from ringlab.numerics.kernels import KERNELS
from tests import oracle
from tests.numerics.cases import ON_CPU, TOLERANCE, Case, assert_near, case
from tests.numerics.test_attend import STRIDED, dtype_of, every_kernel, every_name


def assert_gradients(
    given: Case, kernel: str, *, causal: bool = False, mask: Tensor | None = None
) -> None:
    q, k, v, dout = given
    done = attend(q, k, v, causal=causal, mask=mask, kernel=kernel)
    found = attend_backward(
        dout, q, k, v, done.out, done.lse, causal=causal, mask=mask, kernel=kernel
    )
    exact = oracle.attention(q, k, v, dout, causal=causal, mask=mask)
    for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
        assert_near(gradient, expected, 3 * TOLERANCE[q.dtype])


@every_kernel
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
def test_full_and_diagonal_tiles(kernel: str, dtype: torch.dtype, causal: bool) -> None:
    assert_gradients(case(dtype=dtype), kernel, causal=causal)


@every_kernel
def test_a_row_that_the_mask_leaves_empty_has_no_gradient(kernel: str, dtype: torch.dtype) -> None:
    mask = torch.rand(7, 9) < 0.5
    mask[2], mask[3] = False, True
    assert_gradients(case(dtype=dtype), kernel, mask=mask)


@every_kernel
@pytest.mark.parametrize("heads", [(8, 1), (8, 2), (8, 8), (6, 3)], ids=lambda x: f"{x[0]}:{x[1]}")
def test_report_b8_gradients_of_shared_kv_heads_are_summed(
    kernel: str, dtype: torch.dtype, heads: tuple[int, int]
) -> None:
    assert_gradients(case(heads=heads[0], kv_heads=heads[1], dtype=dtype), kernel, causal=True)


@every_name
@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 9), (5, 9), (9, 5), (9, 1), (40, 300), (300, 40)]
)
def test_report_d14_a_causal_tile_is_aligned_at_the_top_left(
    kernel: str, queries: int, keys: int
) -> None:
    assert_gradients(case(queries=queries, keys=keys, dtype=dtype_of(kernel)), kernel, causal=True)


@every_name
@pytest.mark.parametrize("strided", STRIDED.values(), ids=STRIDED.keys())
def test_report_h1_strided_inputs_are_read_right(kernel: str, strided: object) -> None:
    given = Case(*(strided(x) for x in case(dtype=dtype_of(kernel))))  # type: ignore[operator]
    assert_gradients(given, kernel, causal=True)


@every_name
def test_report_a16_blocks_weigh_their_keys_by_the_final_lse(kernel: str) -> None:
    q, k, v, dout = case(dtype=dtype_of(kernel))
    halves = (slice(0, 4), slice(4, 9))
    first, second = (attend(q, k[:, :, x], v[:, :, x], kernel=kernel) for x in halves)
    final = first.merge(second)
    parts = [
        attend_backward(dout, q, k[:, :, x], v[:, :, x], final.out, final.lse, kernel=kernel)
        for x in halves
    ]
    exact = oracle.attention(q, k, v, dout)
    tolerance = TOLERANCE[q.dtype]
    assert_near(parts[0][0] + parts[1][0], exact.dq, tolerance)
    assert_near(torch.cat([part[1] for part in parts], dim=2), exact.dk, tolerance)
    assert_near(torch.cat([part[2] for part in parts], dim=2), exact.dv, tolerance)


@pytest.mark.parametrize("kernel", ["cpu_flash", "reference"])
def test_report_a16_backward_does_not_run_the_forward_again(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    q, k, v, dout = case()
    done = attend(q, k, v, kernel=kernel)

    def forward(*_: object) -> None:
        raise AssertionError("backward ran the forward kernel")

    monkeypatch.setattr(type(KERNELS[kernel]), "forward", forward)
    attend_backward(dout, q, k, v, done.out, done.lse, kernel=kernel)


@pytest.mark.parametrize("kernel", ["cpu_flash", "reference"])
def test_a_row_that_is_empty_over_all_blocks_has_no_gradient_in_any(kernel: str) -> None:
    q, k, v, dout = case(dtype=torch.float64)
    done = attend(q, k, v, kernel=kernel)
    done.out[:, :, 3], done.lse[:, :, 3] = 0.0, -math.inf
    dq, dk, dv = attend_backward(dout, q, k, v, done.out, done.lse, kernel=kernel)
    assert (dq[:, :, 3] == 0).all()
    others = [0, 1, 2, 4, 5, 6]
    exact = oracle.attention(q[:, :, others], k, v, dout[:, :, others])
    assert_near(dk, exact.dk, 1e-12)
    assert_near(dv, exact.dv, 1e-12)


@every_kernel
def test_report_b12_gradients_come_in_the_accumulation_dtype(
    kernel: str, dtype: torch.dtype
) -> None:
    q, k, v, dout = case(dtype=dtype)
    done = attend(q, k, v, kernel=kernel)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    for out in (done.out, done.out.to(dtype)):
        for gradient in attend_backward(dout, q, k, v, out, done.lse, kernel=kernel):
            assert gradient.dtype == wide


@pytest.mark.parametrize(("kernel", "dtype"), [x for x in ON_CPU if x[0] != "cpu_flash"])
def test_kernels_with_wide_partial_results_do_not_round_gradients_to_16_bit(
    kernel: str, dtype: torch.dtype
) -> None:
    q, k, v, dout = case(dtype=dtype)
    done = attend(q, k, v, kernel=kernel)
    for gradient in (done.out, *attend_backward(dout, q, k, v, done.out, done.lse, kernel=kernel)):
        assert not torch.equal(gradient, gradient.bfloat16().to(gradient.dtype))


@every_name
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
@pytest.mark.parametrize(
    "sizes",
    [{"keys": 0}, {"queries": 0}, {"queries": 0, "keys": 0}, {"batch": 0}],
    ids=["no keys", "no queries", "neither", "no batch"],
)
def test_blocks_without_tokens_have_zero_gradients(
    kernel: str, causal: bool, sizes: dict[str, int]
) -> None:
    q, k, v, dout = case(dtype=dtype_of(kernel), **sizes)
    done = attend(q, k, v, causal=causal, kernel=kernel)
    found = attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, kernel=kernel)
    for gradient, operand in zip(found, (q, k, v), strict=True):
        assert gradient.shape == operand.shape
        assert (gradient == 0).all()


@pytest.mark.parametrize("sizes", [{"keys": 0}, {"queries": 0}, {"batch": 0}], ids=str)
def test_blocks_without_tokens_never_reach_a_kernel(
    sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fused CPU operator ends the process when it gets one."""

    def reached(*_: object) -> None:
        raise AssertionError("a kernel was called without tokens")

    for way in ("forward", "backward"):
        monkeypatch.setattr(CpuFlash, way, reached)
    q, k, v, dout = case(**sizes)
    done = attend(q, k, v)
    attend_backward(dout, q, k, v, done.out, done.lse)


def test_results_of_other_queries_are_refused() -> None:
    q, k, v, dout = case()
    done = attend(q, k, v)
    for wrong in (
        (dout[:, :, :3], done.out, done.lse),
        (dout, done.out[:, :, :3], done.lse),
        (dout, done.out, done.lse.unsqueeze(-1)),
    ):
        with pytest.raises(ValueError, match="dout and out have that shape"):
            attend_backward(wrong[0], q, k, v, wrong[1], wrong[2])
    with pytest.raises(ValueError, match="one device"):
        attend_backward(dout.to("meta"), q, k, v, done.out, done.lse)


def test_the_same_inputs_give_the_same_bits() -> None:
    q, k, v, dout = case(queries=300, keys=300)
    done = attend(q, k, v, causal=True)
    first, second = (
        attend_backward(dout, q, k, v, done.out, done.lse, causal=True) for _ in range(2)
    )
    assert all(map(torch.equal, first, second))


def test_the_operands_are_left_as_they_were() -> None:
    given = case()
    done = attend(*given[:3])
    tensors = (*given, done.out, done.lse)
    before = [x.clone() for x in tensors]
    attend_backward(given.dout, *given[:3], done.out, done.lse)
    assert all(map(torch.equal, tensors, before))
    assert isinstance(done, AttentionState)
