"""The plain PyTorch kernel: every device, every dtype, and the scores in memory.

Everything is computed in the accumulation dtype, so its blocks are not rounded to 16 bit.
The query heads that share a KV head are laid out as more queries of that head, so K and V
are never repeated: [B, Hq, Lq, D] is read as [B, Hkv, G * Lq, D] with G = Hq / Hkv.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ringlab.numerics.dtypes import DTYPES, accumulation_dtype
from ringlab.numerics.kernel import Gradients, Kernel, Result
from ringlab.numerics.lse import final_lse
from ringlab.numerics.tile import Final, Operands


def _fold(x: Tensor, kv_heads: int) -> Tensor:
    """Read [B, Hq, L, ...] as [B, Hkv, G * L, ...]."""
    batch, heads, length, *rest = x.shape
    return x.reshape(batch, kv_heads, heads // kv_heads * length, *rest)


def _scores(block: Operands) -> Tensor:
    """Scaled scores [B, Hkv, G * Lq, Lk], -inf where not allowed."""
    queries = _fold(block.q, block.k.shape[1]) * block.scale
    scores = queries @ block.k.transpose(-2, -1)
    allowed = block.allowed()
    if allowed is None:
        return scores
    return scores.masked_fill(~allowed.repeat(block.group, 1), -math.inf)


class Reference(Kernel):
    """Matrix products and a softmax, written out."""

    name = "reference"
    devices = frozenset()
    dtypes = frozenset(DTYPES)
    partials = "float32 (float64 for float64)"

    def forward(self, block: Operands) -> Result:
        """Compute out = softmax(S) V and lse = log sum exp S, with S the allowed scores."""
        shape = block.q.shape
        block = block.to(accumulation_dtype(block.q.dtype))
        scores = _scores(block)
        lse = torch.logsumexp(scores, dim=-1)  # [B, Hkv, G * Lq]
        finite = lse.masked_fill(lse == -math.inf, 0.0)
        out = torch.exp(scores - finite.unsqueeze(-1)) @ block.v
        return out.reshape(shape), lse.reshape(shape[:-1])

    def backward(self, block: Operands, final: Final) -> Gradients:
        """Compute the gradients from P = exp(S - lse) and dS = P * (dO V' - sum(dO * O))."""
        kind, kv_heads = accumulation_dtype(block.q.dtype), block.k.shape[1]
        block, final = block.to(kind), final.to(kind)
        scores = _scores(block)
        lse = _fold(final_lse(final.lse, kind), kv_heads)
        weights = torch.exp(scores - lse.unsqueeze(-1))  # [B, Hkv, G * Lq, Lk]
        dout = _fold(final.dout, kv_heads)
        inner = (dout * _fold(final.out, kv_heads)).sum(-1, keepdim=True)
        dscores = weights * (dout @ block.v.transpose(-2, -1) - inner) * block.scale
        dq = (dscores @ block.k).reshape(block.q.shape)
        dk = dscores.transpose(-2, -1) @ _fold(block.q, kv_heads)
        dv = weights.transpose(-2, -1) @ dout
        return dq, dk, dv
