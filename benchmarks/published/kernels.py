"""The kernels that published programs call, as operators that can be recorded and priced.

`flash_forward` and `flash_backward` return results in the dtype of their inputs, as the kernels of
the flash-attn package do; ringlab's own operators keep float32. `combine_` is a merge that
``torch.compile`` has made one kernel of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ringlab.numerics import ops
from ringlab.operators import register
from ringlab.operators.attention import attention_work
from ringlab.operators.sizes import dtype_name, moved, size
from ringlab.timeline import Work

Gradients = tuple[Tensor, Tensor, Tensor]

_LIBRARY = torch.library.Library("published", "FRAGMENT")


def _scale(q: Tensor) -> float:
    return float(q.shape[-1] ** -0.5)


def _forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    out, lse = ops.attend(q, k, v, None, causal, _scale(q), None)
    return out.to(q.dtype).contiguous(), lse.to(torch.float32).contiguous()


def _forward_meta(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    return q.new_empty(q.shape), q.new_empty(q.shape[:-1], dtype=torch.float32)


def _backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> Gradients:
    grads = ops.attend_backward(dout, q, k, v, out, lse.double(), None, causal, _scale(q), None)
    dq, dk, dv = (grad.to(q.dtype).contiguous() for grad in grads)
    return dq, dk, dv


def _backward_meta(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> Gradients:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _by_delta(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, delta: Tensor, lse: Tensor
) -> Gradients:
    # The kernel needs the output only for delta, the sum over D of out times dout: any output
    # with that sum will do.
    out = dout.float() * (delta / dout.float().square().sum(-1)).unsqueeze(-1)
    return _backward(dout, q, k, v, out.to(q.dtype), lse, False)


def _by_delta_meta(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, delta: Tensor, lse: Tensor
) -> Gradients:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _combine(out: Tensor, lse: Tensor, block_out: Tensor, block_lse: Tensor) -> None:
    weight = torch.sigmoid(block_lse - lse).unsqueeze(-1)
    out.add_(weight * (block_out.to(out.dtype) - out))
    lse.add_(F.softplus(block_lse - lse))


def _combine_meta(out: Tensor, lse: Tensor, block_out: Tensor, block_lse: Tensor) -> None:
    return None


def _define(schema: str, run: Any, meta: Any) -> Any:
    name = _LIBRARY.define(schema)
    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    _LIBRARY.impl(name, meta, "Meta")
    return getattr(torch.ops.published, name).default


flash_forward = _define(
    "flash_forward(Tensor q, Tensor k, Tensor v, bool causal) -> (Tensor, Tensor)",
    _forward,
    _forward_meta,
)
flash_backward = _define(
    "flash_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, bool causal)"
    " -> (Tensor, Tensor, Tensor)",
    _backward,
    _backward_meta,
)
flash_backward_by_delta = _define(
    "flash_backward_by_delta(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor delta, Tensor lse)"
    " -> (Tensor, Tensor, Tensor)",
    _by_delta,
    _by_delta_meta,
)
combine_ = _define(
    "combine_(Tensor(a!) out, Tensor(b!) lse, Tensor block_out, Tensor block_lse) -> ()",
    _combine,
    _combine_meta,
)


def _forward_work(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    q, k, v, causal = args
    return attention_work("attention", q, k, None, causal, products=2, read=size(q, k, v),
                          written=size(result))  # fmt: skip


def _backward_work(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    q, k, causal = args[1], args[2], args[6]
    return attention_work("attention backward", q, k, None, causal, products=5,
                          read=size(args[:6]), written=size(result))  # fmt: skip


def _by_delta_work(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    return attention_work("attention backward", args[1], args[2], None, False, products=5,
                          read=size(args), written=size(result))  # fmt: skip


def _combine_work(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    out, lse = args[:2]
    return Work("memory", 0, size(*args), size(out, lse), dtype_name(out.dtype))


register(flash_forward, _forward_work)
register(flash_backward, _backward_work)
register(flash_backward_by_delta, _by_delta_work)
register(combine_, _combine_work)
register(torch.ops.aten.log_sigmoid_forward, moved)
