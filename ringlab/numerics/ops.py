"""attend and attend_backward as torch operators.

As operators they run under ``torch.compile``, carry shapes for meta tensors and FLOP
formulas, and appear as one event to whatever records a program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from ringlab.numerics.dtypes import accumulation_dtype
from ringlab.numerics.kernel import Gradients
from ringlab.numerics.kernels import choose
from ringlab.numerics.library import define, refuse_autograd
from ringlab.numerics.lse import canonical_lse, lse_dtype
from ringlab.numerics.memory_format import (
    as_gradient,
    as_output,
    empty_like,
    empty_sequence_major,
)
from ringlab.numerics.tile import Final, Operands

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _without_autocast(run: Callable[_P, _R]) -> Callable[_P, _R]:
    """Keep autocast out of a kernel: it would round float32 accumulation to 16 bit."""

    @functools.wraps(run)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        first = args[0]
        assert isinstance(first, Tensor)
        device = first.device.type
        if not torch.is_autocast_enabled(device):
            return run(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return run(*args, **kwargs)

    return wrapper


def _empty_lse(q: Tensor) -> Tensor:
    return torch.empty(q.shape[:-1], dtype=lse_dtype(q.device), device=q.device)


@_without_autocast
def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    kernel: str | None,
) -> tuple[Tensor, Tensor]:
    refuse_autograd(q, k, v)
    chosen = choose(kernel, q, k, causal, mask is not None)
    kind = accumulation_dtype(q.dtype)
    if q.numel() == 0 or k.numel() == 0:
        return empty_like(q, kind).zero_(), _empty_lse(q).fill_(-torch.inf)
    out, lse = chosen.forward(Operands(q, k, v, causal, mask, scale))
    return as_output(out, q, kind), canonical_lse(lse, out)


def _attend_meta(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    kernel: str | None,
) -> tuple[Tensor, Tensor]:
    return empty_like(q, accumulation_dtype(q.dtype)), _empty_lse(q)


@_without_autocast
def _attend_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    kernel: str | None,
) -> Gradients:
    refuse_autograd(dout, q, k, v, out, lse)
    chosen = choose(kernel, q, k, causal, mask is not None, backward=True)
    kind = accumulation_dtype(q.dtype)
    if q.numel() == 0 or k.numel() == 0:
        zeros = [empty_sequence_major(x, kind).zero_() for x in (q, k, v)]
        return zeros[0], zeros[1], zeros[2]
    block = Operands(q, k, v, causal, mask, scale)
    dq, dk, dv = chosen.backward(block, Final(dout, out, lse))
    return as_gradient(dq, kind), as_gradient(dk, kind), as_gradient(dv, kind)


def _attend_backward_meta(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    kernel: str | None,
) -> Gradients:
    kind = accumulation_dtype(q.dtype)
    dq, dk, dv = (empty_sequence_major(x, kind) for x in (q, k, v))
    return dq, dk, dv


attend = define(
    "attend(Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, float scale, str? kernel)"
    " -> (Tensor, Tensor)",
    _attend,
    _attend_meta,
)
attend_backward = define(
    "attend_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse,"
    " Tensor? mask, bool causal, float scale, str? kernel) -> (Tensor, Tensor, Tensor)",
    _attend_backward,
    _attend_backward_meta,
)
