"""PyTorch's own context parallelism: as shipped, and its loop with an operator for CPUs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn import functional

from benchmarks.peers.libraries import cpu_operator
from benchmarks.peers.peer import Balanced
from benchmarks.peers.problem import Problem


class AsShipped(Balanced):
    """`context_parallel` around SDPA."""

    name = "PyTorch context_parallel"
    package = "torch"
    how = "`context_parallel` around SDPA, load balancing where causal; nothing changed"
    timed = False

    _mesh: DeviceMesh

    def start(self) -> None:
        """Import it and make its mesh."""
        from torch.distributed.tensor.experimental import context_parallel  # noqa: F401

        self._mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def around(self, problem: Problem) -> AbstractContextManager[object]:
        """Open `context_parallel`, which wants a buffer with the tokens of the whole sequence."""
        from torch.distributed.tensor.experimental import context_parallel

        _balance(problem)
        tokens = torch.zeros(1, problem.length)
        return context_parallel(self._mesh, buffers=[tokens], buffer_seq_dims=[1])

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Call SDPA, which `context_parallel` has replaced."""
        return functional.scaled_dot_product_attention(
            q, k, v, is_causal=problem.causal, enable_gqa=problem.heads != problem.kv_heads
        )


class WithCpuOperator(Balanced):
    """The loop below `context_parallel`, given the CPU operator."""

    name = "PyTorch's ring loop *"
    package = "torch"
    how = (
        "`_templated_ring_attention` and its backward, the loop below `context_parallel`, called "
        "with the CPU operator instead of a CUDA one; rotation all-to-all"
    )

    def start(self) -> None:
        """Choose the rotation that is a ring."""
        from torch.distributed.tensor.experimental._attention import set_rotate_method

        set_rotate_method("alltoall")

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Run its loop under autograd."""
        _balance(problem)
        out: Tensor = _Loop.apply(q, k, v, problem.causal)  # type: ignore[no-untyped-call]  # torch
        return out


def _balance(problem: Problem) -> None:
    from torch.distributed.tensor.experimental._context_parallel import _attention

    _attention._cp_options.enable_load_balance = problem.causal


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        from torch.distributed.tensor.experimental._context_parallel import _attention

        out, lse = _attention._templated_ring_attention(
            _group(), 2, _forward, q, k, v, is_causal=causal
        )
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal = causal
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> Any:
        from torch.distributed.tensor.experimental._context_parallel import _attention

        q, k, v, out, lse = ctx.saved_tensors
        found = _attention._templated_ring_attention_backward(
            _group(), 2, _backward, dout, "dout", q, k, v, out, lse, ctx.causal
        )
        return *found, None


def _group() -> dist.ProcessGroup:
    assert dist.group.WORLD is not None, "a rank has joined the others before it starts a library"
    return dist.group.WORLD


def _forward(query: Tensor, key: Tensor, value: Tensor, **given: Any) -> tuple[Tensor, ...]:
    return cpu_operator.forward(query, key, value, given["is_causal"])


def _backward(query: Tensor, key: Tensor, value: Tensor, **given: Any) -> tuple[Tensor, ...]:
    dout, out, lse = given["dout"], given["out"], given["logsumexp"]
    return cpu_operator.backward(dout, query, key, value, out, lse, given["is_causal"])
