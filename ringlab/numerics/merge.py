"""The arithmetic of merging two partial results of softmax attention.

With normalised outputs o and log-sum-exps l of two disjoint sets of keys, the result
over both sets is

    l = log(exp(l1) + exp(l2))
    o = o1 + sigmoid(l2 - l1) * (o2 - o1)

which never forms an exponential that can overflow. A row without keys has l = -inf; its
o has no meaning and is not read.

References
----------
Milakov and Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ringlab.numerics.library import define, refuse_autograd
from ringlab.numerics.memory_format import empty_like

State = tuple[Tensor, Tensor]  # out [B, H, L, D], lse [B, H, L]


def _fused(state: State, other: State, into: State) -> None:
    """Merge in one pass over memory, right unless something other than 0 is in an empty row.

    The sign of a zero may change beside an empty row.
    """
    (out, lse), (other_out, other_lse) = state, other
    weight = torch.sigmoid(other_lse - lse)
    # Two empty rows are infinitely far apart and yet equal: NaN.
    weight = weight.masked_fill_(other_lse == -math.inf, 0.0).to(out.dtype)
    torch.lerp(out, other_out, weight.unsqueeze(-1), out=into[0])
    torch.logaddexp(lse, other_lse, out=into[1])


def _row_by_row(state: State, other: State, into: State) -> None:
    """Merge rows that both have keys; copy, bit for bit, rows of which only one has."""
    (out, lse), (other_out, other_lse) = state, other
    empty = (lse == -math.inf).unsqueeze(-1)
    other_empty = (other_lse == -math.inf).unsqueeze(-1)
    weight = torch.sigmoid(other_lse - lse).to(out.dtype)
    merged = torch.lerp(out, other_out, weight.unsqueeze(-1))
    torch.where(other_empty, out, merged, out=into[0])
    torch.where(empty, other_out, into[0], out=into[0])
    into[0].masked_fill_(empty & other_empty, 0.0)
    torch.logaddexp(lse, other_lse, out=into[1])


def _copy_first(state: State, other: State, into: State) -> None:
    for target, source in zip(into, state, strict=True):
        target.copy_(source)


def _copy_other(state: State, other: State, into: State) -> None:
    _copy_first(other, state, into)


def _way(state: State, other: State, canonical: bool) -> Callable[[State, State, State], None]:
    """Choose the fewest passes over memory that are right for these rows.

    The LSE is looked at on CPU only, where that is free; `canonical` says that the output is
    zero in empty rows.
    """
    lse, other_lse = state[1], other[1]
    if lse.device.type == "cpu" and not math.isfinite((lse + other_lse).sum().item()):
        if not canonical:
            return _row_by_row
        if bool((other_lse == -math.inf).all()):
            return _copy_first
        return _copy_other if bool((lse == -math.inf).all()) else _fused
    return _fused if canonical or lse.device.type == "cpu" else _row_by_row


def _merge_into(state: State, other: State, canonical: bool, into: State) -> None:
    refuse_autograd(*state, *other)
    _way(state, other, canonical)(state, other, into)


def _merge(
    out: Tensor, lse: Tensor, other_out: Tensor, other_lse: Tensor, canonical: bool
) -> State:
    result = empty_like(out, out.dtype), torch.empty(lse.shape, dtype=lse.dtype, device=lse.device)
    _merge_into((out, lse), (other_out, other_lse), canonical, result)
    return result


def _merge_meta(
    out: Tensor, lse: Tensor, other_out: Tensor, other_lse: Tensor, canonical: bool
) -> State:
    return empty_like(out, out.dtype), torch.empty(lse.shape, dtype=lse.dtype, device=lse.device)


def _merge_(
    out: Tensor, lse: Tensor, other_out: Tensor, other_lse: Tensor, canonical: bool
) -> None:
    _merge_into((out, lse), (other_out, other_lse), canonical, (out, lse))


def _merge_meta_(
    out: Tensor, lse: Tensor, other_out: Tensor, other_lse: Tensor, canonical: bool
) -> None:
    return None


merge = define(
    "merge(Tensor out, Tensor lse, Tensor other_out, Tensor other_lse, bool canonical)"
    " -> (Tensor, Tensor)",
    _merge,
    _merge_meta,
)
merge_ = define(
    "merge_(Tensor(a!) out, Tensor(b!) lse, Tensor other_out, Tensor other_lse, bool canonical)"
    " -> ()",
    _merge_,
    _merge_meta_,
)
