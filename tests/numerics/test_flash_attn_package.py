"""The adapter of the flash_attn package, with a stand-in for the package."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from ringlab.numerics import flash_attn_package as adapter
from ringlab.numerics.flash_attn_package import FlashAttnPackage
from ringlab.numerics.tile import Final, Operands
from tests import oracle
from tests.numerics.cases import assert_near, case


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Tensor | None,
    return_softmax: bool,
) -> tuple[Tensor, Tensor, None, None]:
    assert (dropout_p, window_size_left, window_size_right, softcap) == (0.0, -1, -1, 0.0)
    assert alibi_slopes is None
    assert not return_softmax
    done = oracle.attention(*_heads_first(q, k, v), causal=causal, scale=softmax_scale)
    return done.out.transpose(1, 2).to(q.dtype), done.lse.float(), None, None


def backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Tensor | None,
    deterministic: bool,
    rng_state: Tensor | None = None,
) -> None:
    assert softmax_lse.shape == (q.shape[0], q.shape[2], q.shape[1])
    assert all(x.is_contiguous() for x in (dout, q, k, v, out, softmax_lse, dq, dk, dv))
    dout, q, k, v = _heads_first(dout, q, k, v)
    done = oracle.attention(q, k, v, dout, causal=causal, scale=softmax_scale)
    for written, gradient in ((dq, done.dq), (dk, done.dk), (dv, done.dv)):
        written.copy_(gradient.transpose(1, 2))


def _heads_first(*tensors: Tensor) -> list[Tensor]:
    return [x.transpose(1, 2) for x in tensors]


@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
def test_the_package_is_called_with_its_own_layout_and_arguments(
    causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = SimpleNamespace(_flash_attn_forward=forward, _flash_attn_backward=backward)
    monkeypatch.setattr(adapter, "_interface", lambda: package)
    q, k, v, dout = case(dtype=torch.bfloat16)
    block = Operands(q, k, v, causal, None, 0.3)
    exact = oracle.attention(q, k, v, dout, causal=causal, scale=0.3)
    out, lse = FlashAttnPackage().forward(block)
    assert_near(out, exact.out, 1e-2)
    assert_near(lse, exact.lse, 1e-6)
    found = FlashAttnPackage().backward(block, Final(dout, out, lse))
    for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
        assert_near(gradient, expected, 1e-2)


def test_a_package_of_another_version_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def older(q: Tensor, k: Tensor, v: Tensor, dropout_p: float, window_size: object) -> None:
        """Take the window as one argument, as versions before 2.7 do."""

    check = adapter._problem.__wrapped__
    package = SimpleNamespace(_flash_attn_forward=forward, _flash_attn_backward=backward)
    monkeypatch.setattr(adapter, "_interface", lambda: package)
    assert check() is None
    package._flash_attn_forward = older
    assert "_flash_attn_forward of the installed flash_attn is not" in check()
    package._flash_attn_forward = forward
    del package._flash_attn_backward
    assert "_flash_attn_backward of the installed flash_attn is not" in check()


def test_the_arguments_of_a_torch_custom_operator_are_read() -> None:
    @torch.library.custom_op("ringlab_tests::operator", mutates_args=())
    def operator(first: Tensor, second: float) -> Tensor:
        return first * second

    assert adapter._parameters(operator) == ("first", "second")
