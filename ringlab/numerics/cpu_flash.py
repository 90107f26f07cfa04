"""The fused flash kernel that torch ships for CPU, adapted.

Habits of the operator that are corrected here: a fully masked row has lse = 0.0, boolean
masks are refused, a strided head dimension is read as if it were dense, the LSE is strided,
and a final LSE of -inf gives NaN gradients.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ringlab.numerics import private_ops
from ringlab.numerics.dtypes import DTYPES, SIXTEEN_BIT, accumulation_dtype
from ringlab.numerics.kernel import Gradients, Kernel, Result
from ringlab.numerics.lse import canonical_lse, final_lse
from ringlab.numerics.memory_format import rows_contiguous
from ringlab.numerics.merge import merge_
from ringlab.numerics.tile import Final, Operands, few_queries

_FORWARD = "_scaled_dot_product_flash_attention_for_cpu"
_BACKWARD = "_scaled_dot_product_flash_attention_for_cpu_backward"
PIECE = 2**22
"""Bytes of float32 keys and values that are made at a time for few queries: they stay in cache."""


def _additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Write a boolean [Lq, Lk] as scores to add: 0 where allowed, else -inf."""
    if mask is None:
        return None
    return torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, -math.inf)


def _queries(block: Operands) -> Tensor:
    """Queries as the operator gets them: [B, Hkv, G * Lq, D] where that is a view.

    Then the operator reads K and V once for all heads that share them: two to five times
    faster for a single query, and never slower.
    """
    q = rows_contiguous(block.q)
    if block.causal or block.mask is not None:
        return q
    if block.group > 1 and q.is_contiguous():
        return q.view(q.shape[0], block.k.shape[1], -1, q.shape[3])
    if q.dtype == torch.bfloat16 and q.shape[2] == 1:
        return q.expand(-1, -1, 2, -1)  # of one row it takes longer than of two
    return q


class CpuFlash(Kernel):
    """The operator in the dtype of its inputs: 16-bit inputs give blocks rounded to 16 bit."""

    name = "cpu_flash"
    devices = frozenset({"cpu"})
    dtypes = frozenset(DTYPES)
    partials = "that of the inputs"

    def missing(self) -> str | None:
        """Check the schemas of the private operators."""
        return private_ops.first_problem(_FORWARD, _BACKWARD)

    def forward(self, block: Operands) -> Result:
        """Run the operator; give rows that the mask leaves empty an LSE of -inf."""
        shape, queries = block.q.shape, _queries(block)
        out, lse = private_ops.operator(_FORWARD)(
            queries,
            rows_contiguous(block.k),
            rows_contiguous(block.v),
            0.0,
            block.causal,
            attn_mask=_additive(block.mask, block.q.dtype),
            scale=block.scale,
        )
        if queries.shape[1] == shape[1] and queries.shape[2] > shape[2]:  # the row twice
            out, lse = out[:, :, :1], lse[:, :, :1]
        lse = canonical_lse(lse, out).view(shape[:-1])
        if block.mask is not None:
            lse.masked_fill_(~block.mask.any(dim=-1), -math.inf)
        return out.reshape(shape), lse

    def backward(self, block: Operands, final: Final) -> Gradients:
        """Run the operator's backward with the final output and LSE."""
        final = final.to(block.q.dtype)
        dq, dk, dv = private_ops.operator(_BACKWARD)(
            *map(rows_contiguous, (final.dout, block.q, block.k, block.v, final.out)),
            final_lse(final.lse, accumulation_dtype(block.q.dtype)),
            0.0,
            block.causal,
            attn_mask=_additive(block.mask, block.q.dtype),
            scale=block.scale,
        )
        return dq, dk, dv


class CpuFlashFloat32(CpuFlash):
    """16-bit inputs widened to float32 first: float32 partial results.

    On a CPU without a 16-bit matrix unit this is also the faster way, by far in backward. For
    few queries the keys are widened in pieces, which needs little memory for them and is up to
    four times as fast as all at once.
    """

    name = "cpu_flash_float32"
    dtypes = frozenset(SIXTEEN_BIT)
    partials = "float32"

    def forward(self, block: Operands) -> Result:
        """Run the operator on float32 copies."""
        if block.causal or not few_queries(block.q, block.k):
            return super().forward(block.to(torch.float32))
        batch, heads, _, dim = block.k.shape
        size = max(64, PIECE // (2 * batch * heads * dim * torch.float32.itemsize))
        first, *others = block.pieces(size)
        state = super().forward(first.to(torch.float32))
        for piece in others:
            merge_(*state, *super().forward(piece.to(torch.float32)), True)
        return state

    def backward(self, block: Operands, final: Final) -> Gradients:
        """Run the operator's backward on float32 copies."""
        return super().backward(block.to(torch.float32), final)
