"""A problem of self-attention that every library gets, and its exact answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

RESULTS = ("out", "dq", "dk", "dv")


@dataclass(frozen=True)
class Problem:
    """Self-attention of a whole sequence, B = 1.

    Attributes
    ----------
    length : int
        Tokens.
    heads, kv_heads, dim : int
    dtype : str
        A name of torch, for example ``"float32"``.
    causal : bool
    """

    length: int
    heads: int
    kv_heads: int
    dim: int
    dtype: str
    causal: bool

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Make q, k, v and the gradient of the output, [1, H, L, D]: the same in every call."""
        generator = torch.Generator().manual_seed(0)

        def made(heads: int) -> Tensor:
            shape = (1, heads, self.length, self.dim)
            return torch.randn(shape, generator=generator).to(getattr(torch, self.dtype))

        return made(self.heads), made(self.kv_heads), made(self.kv_heads), made(self.heads)

    @property
    def kv_shard_bytes(self) -> float:
        """Bytes of the K and V of one of two ranks: the unit in which traffic is told."""
        size: int = getattr(torch, self.dtype).itemsize
        return 2 * self.kv_heads * self.length * self.dim * size / 2


def answer(problem: Problem, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Out and gradients by SDPA in one process, computed in some dtype; exact in float64."""
    q, k, v, dout = (x.to(dtype) for x in problem.tensors())
    for x in (q, k, v):
        x.requires_grad_()
    out = scaled_dot_product_attention(
        q, k, v, is_causal=problem.causal, enable_gqa=problem.heads != problem.kv_heads
    )
    out.backward(dout)
    found = (out.detach(), q.grad, k.grad, v.grad)
    return {name: x for name, x in zip(RESULTS, found, strict=True) if x is not None}


def error(found: Tensor, exact: Tensor) -> float:
    """Relative error in the Frobenius norm; infinite where a value is not finite."""
    difference = torch.linalg.vector_norm(found.double() - exact)
    relative = (difference / torch.linalg.vector_norm(exact)).item()
    return relative if relative == relative else float("inf")
