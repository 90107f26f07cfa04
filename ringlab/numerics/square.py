"""Top-left aligned causal tiles for kernels whose causal tiles must be square.

FlashAttention aligns the causal diagonal at the bottom right, cuDNN by version; both agree
with the top left where there are as many queries as keys. Of a tile with n = min(Lq, Lk),
the first n queries and keys are that square, keys after n are seen by no query, and queries
after n see every key::

      Lq > Lk             Lq < Lk
      x . .               x . . . .
      x x .               x x . . .
      x x x               x x x . .
      x x x
      x x x
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import pad

from ringlab.numerics.kernel import Gradients, Result
from ringlab.numerics.tile import Final, Operands


def forward_top_left(forward: Callable[[Operands], Result], block: Operands) -> Result:
    """Compute a causal block by calling `forward` on a square and on a full tile."""
    queries, keys = block.q.shape[2], block.k.shape[2]
    side = min(queries, keys)
    out, lse = forward(block.corner(side))
    if queries == side:
        return out, lse
    out_below, lse_below = forward(block.below(side))
    return torch.cat([out, out_below], dim=2), torch.cat([lse, lse_below], dim=2)


def backward_top_left(
    backward: Callable[[Operands, Final], Gradients], block: Operands, final: Final
) -> Gradients:
    """Compute a causal block's gradients by calling `backward` on a square and a full tile."""
    queries, keys = block.q.shape[2], block.k.shape[2]
    side = min(queries, keys)
    dq, dk, dv = backward(block.corner(side), final.rows(0, side))
    if keys > side:
        unseen = (0, 0, 0, keys - side)
        return dq, pad(dk, unseen), pad(dv, unseen)
    if queries > side:
        dq_below, dk_below, dv_below = backward(block.below(side), final.rows(side))
        return torch.cat([dq, dq_below], dim=2), dk + dk_below, dv + dv_below
    return dq, dk, dv
