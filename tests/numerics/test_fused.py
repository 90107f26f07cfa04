"""What the adapters of fused CUDA kernels share, run with a stand-in that has their habits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from ringlab.numerics import private_ops
from ringlab.numerics.cpu_flash import CpuFlash
from ringlab.numerics.cuda import CudaCudnn
from ringlab.numerics.fused import FusedKernel
from ringlab.numerics.kernel import Gradients, Result
from ringlab.numerics.kernels import KERNELS
from ringlab.numerics.tile import Final, Operands
from tests import oracle
from tests.numerics.cases import assert_near, case


class StandIn(FusedKernel):
    """A kernel on CPU that takes only what FlashAttention takes, and pads its LSE to 32."""

    name = "stand_in"
    devices = frozenset({"cpu"})
    dtypes = frozenset({torch.float64})

    def __init__(self) -> None:
        self.tiles: list[tuple[int, int, bool]] = []

    def call(self, block: Operands) -> Result:
        self._check(block)
        out, lse = CpuFlash().forward(block)
        return out, pad(lse, (0, -lse.shape[2] % 32), value=math.nan).unsqueeze(-1)

    def call_backward(self, block: Operands, final: Final) -> Gradients:
        self._check(block)
        assert final.lse.is_contiguous()
        assert final.lse.shape == block.q.shape[:-1]
        assert final.dout.dtype == final.out.dtype == block.q.dtype
        return CpuFlash().backward(block, final)

    def _check(self, block: Operands) -> None:
        queries, keys = block.q.shape[2], block.k.shape[2]
        assert block.mask is None
        assert block.q.shape[3] % 8 == 0
        assert all(x.stride(-1) == 1 for x in (block.q, block.k, block.v))
        assert queries == keys or not block.causal
        self.tiles.append((queries, keys, block.causal))


SIZES = [(9, 9), (9, 5), (5, 9), (1, 9), (9, 1)]


@pytest.mark.parametrize(("queries", "keys"), SIZES)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
@pytest.mark.parametrize("head_dim", [8, 5, 17])
def test_any_block_is_computed_from_tiles_that_such_a_kernel_takes(
    queries: int, keys: int, causal: bool, head_dim: int
) -> None:
    q, k, v, dout = case(queries=queries, keys=keys, head_dim=head_dim, dtype=torch.float64)
    block = Operands(q, k, v, causal, None, 0.3)
    exact = oracle.attention(q, k, v, dout, causal=causal, scale=0.3)
    out, lse = StandIn().forward(block)
    assert_near(out, exact.out, 1e-13)
    assert_near(lse, exact.lse, 1e-13)
    found = StandIn().backward(block, Final(dout.float(), out, lse))
    exact = oracle.attention(q, k, v, dout.float(), causal=causal, scale=0.3)
    for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
        assert_near(gradient, expected, 1e-12)


def test_a_wide_causal_tile_costs_no_more_than_its_square() -> None:
    kernel = StandIn()
    q, k, v, _ = case(queries=5, keys=9, dtype=torch.float64)
    kernel.forward(Operands(q, k, v, True, None, 0.3))
    assert kernel.tiles == [(5, 5, True)]


def test_a_row_that_is_empty_over_all_blocks_has_no_gradient() -> None:
    q, k, v, dout = case(dtype=torch.float64)
    block = Operands(q, k, v, False, None, 0.3)
    out, lse = StandIn().forward(block)
    lse[:, :, 3] = -math.inf
    found = StandIn().backward(block, Final(dout, out, lse))
    assert (found[0][:, :, 3] == 0).all()
    assert all(torch.isfinite(gradient).all() for gradient in found)


def test_masks_wide_heads_and_other_dtypes_are_refused() -> None:
    q, k, _, _ = case(head_dim=264, dtype=torch.float64)
    assert "no boolean mask" in (StandIn().refuses(q, k, False, True) or "")
    assert "up to 256, not 264" in (StandIn().refuses(q, k, False, False) or "")
    narrow = case(dtype=torch.float32)
    assert "not float32" in (StandIn().refuses(narrow.q, narrow.k, False, False) or "")


def test_cudnn_refuses_a_single_key_and_deterministic_mode() -> None:
    q, k, _, _ = case(dtype=torch.float16)
    assert "single key" in (CudaCudnn().refuses(q, k[:, :, :1], False, False) or "")
    assert "single key" in (CudaCudnn().refuses(q[:, :, :1], k, True, False) or "")
    torch.use_deterministic_algorithms(True)
    try:
        assert "not deterministic" in (CudaCudnn().refuses(q, k, False, False) or "")
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", ["cuda_flash", "cuda_cudnn"])
def test_the_adapters_call_the_private_operators_as_their_shapes_demand(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The meta implementations of torch check the arguments; no device is needed."""
    monkeypatch.setattr("ringlab.numerics.cuda._cudnn_lse_dim", lambda _: 4)
    q, k, v, dout = (x.to("meta") for x in case(dtype=torch.bfloat16))
    kernel = KERNELS[name]
    for causal in (False, True):
        block = Operands(q, k, v, causal, None, 0.3)
        out, lse = kernel.forward(block)
        assert (out.shape, lse.shape) == (q.shape, q.shape[:-1])
        found = kernel.backward(block, Final(dout, out.float(), lse))
        assert [x.shape for x in found] == [q.shape, k.shape, v.shape]


@pytest.mark.parametrize(("dim", "shape"), [(3, (2, 4, 7)), (4, (2, 4, 7, 1))])
def test_cudnn_gets_the_lse_in_the_shape_that_it_returns_itself(
    dim: int, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, ...]] = []

    def operator(name: str) -> object:
        def backward(*args: Tensor, scale: float) -> Gradients:
            given.append(tuple(args[5].shape))
            return args[1], args[2], args[3]

        return backward

    monkeypatch.setattr("ringlab.numerics.cuda._cudnn_lse_dim", lambda _: dim)
    monkeypatch.setattr(private_ops, "operator", operator)
    q, k, v, dout = case(dtype=torch.bfloat16)
    lse = torch.zeros(2, 4, 7, dtype=torch.float64)
    CudaCudnn().backward(Operands(q, k, v, False, None, 0.3), Final(dout, q, lse))
    assert given == [shape]
