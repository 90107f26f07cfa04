"""What the prefill methods share: the checks at the door, and the autograd function."""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calls.autocast import autocast
from ringlab.calls.checks import check_kernel, check_plain
from ringlab.layout import Layout
from ringlab.numerics.memory_format import rows_contiguous
from ringlab.prefill.blocks import Own
from ringlab.prefill.checks import check_inputs, check_options
from ringlab.prefill.plan import Plan, make_plan
from ringlab.prefill.support import PREFILL

Gradients = tuple[Tensor, Tensor, Tensor]


class Method(Protocol):
    """How K and V reach the queries, forward and backward."""

    name: str

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
        """Return out [B, Hq, L, D] in the dtype of q and lse [B, Hq, L]."""
        ...

    @staticmethod
    def backward(own: Own, plan: Plan) -> Gradients:
        """Return dq, dk and dv in the accumulation dtype."""
        ...


class _Attention(torch.autograd.Function):
    """Saves the rank's own tensors only: nothing foreign is kept for the backward."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: Plan, method: Method) -> Tensor:
        # Kernels would copy a strided head dimension again for every tile.
        out, lse = method.forward(rows_contiguous(q), rows_contiguous(k), rows_contiguous(v), plan)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.plan, ctx.method = plan, method
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        grads = _Backward.apply(dout, *ctx.saved_tensors, ctx.plan, ctx.method)  # type: ignore[no-untyped-call]  # torch
        wanted = zip(grads, ctx.needs_input_grad, strict=False)
        return *(grad if needed else None for grad, needed in wanted), None, None


class _Backward(torch.autograd.Function):
    """The backward, as a function that refuses to be differentiated by name."""

    @staticmethod
    def forward(
        ctx: Any,
        dout: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        out: Tensor,
        lse: Tensor,
        plan: Plan,
        method: Method,
    ) -> Gradients:
        ctx.name = plan.name
        own = Own(
            dout=rows_contiguous(dout),
            q=rows_contiguous(q),
            k=rows_contiguous(k),
            v=rows_contiguous(v),
            out=rows_contiguous(out),
            lse=lse,
        )
        return method.backward(own, plan)  # autograd rounds to the dtype of q, k and v

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise PREFILL.refused("double backward", ctx.name)


def attention(
    method: Method,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    layout: Layout,
    causal: bool,
    scale: float | None,
    length: int | None,
    group: dist.ProcessGroup | None,
    kernel: str | None,
) -> Tensor:
    """Check, plan and run a prefill method under autograd and autocast."""
    name = method.name
    check_plain(name, PREFILL, q=q, k=k, v=v)
    q, k, v = autocast(q, k, v)
    check_inputs(name, q, k, v)
    check_options(name, causal, scale, length)
    check_kernel(kernel, q, k, causal)
    gradients = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    plan = make_plan(name, q, k, layout=layout, causal=causal, scale=scale, kernel=kernel,
                     length=length, group=group, gradients=gradients)  # fmt: skip
    result: Tensor = _Attention.apply(q, k, v, plan, method)  # type: ignore[no-untyped-call]  # torch
    return result
