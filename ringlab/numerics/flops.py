"""FLOP formulas of the attention operators, for ``torch.utils.flop_counter``.

Counted as that module counts: a multiplication and an addition are two, and only matrix
multiplications count. With `pairs` the number of (query, key) pairs that may attend, one
product over them costs 2 * D * Hq * pairs; forward has two such products, backward five.
"""

from __future__ import annotations

from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from ringlab.numerics import ops
from ringlab.numerics.tile import causal_pairs


def pairs(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool) -> int:
    """Count the (query, key) pairs that may attend, exactly.

    A mask without data (on the meta device) counts as if it allowed every pair.
    """
    queries, keys = q.shape[2], k.shape[2]
    if causal:
        return causal_pairs(queries, keys)
    if mask is not None and type(mask) is Tensor and not mask.is_meta:
        return int(mask.sum())
    return queries * keys


def _product(q: Tensor, k: Tensor, mask: Tensor | None, causal: bool) -> int:
    batch, heads, _, head_dim = q.shape
    return 2 * batch * heads * head_dim * pairs(q, k, mask, causal)


def attend_flops(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    kernel: str | None,
    *,
    out_val: object = None,
) -> int:
    """4 * D * Hq * pairs for each sequence of the batch: scores and weighted values."""
    return 2 * _product(q, k, mask, causal)


def attend_backward_flops(
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
    *,
    out_val: object = None,
) -> int:
    """10 * D * Hq * pairs: the scores again, dP, dV, dQ and dK."""
    return 5 * _product(q, k, mask, causal)


register_flop_formula(ops.attend.overloadpacket, get_raw=True)(attend_flops)
register_flop_formula(ops.attend_backward.overloadpacket, get_raw=True)(attend_backward_flops)
