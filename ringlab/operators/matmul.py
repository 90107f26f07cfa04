"""Matrix products: two FLOPs a multiply-add, operands read once, the result written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ringlab.operators.sizes import Formula, dtype_name, size
from ringlab.timeline import Work

_aten: Any = torch.ops.aten


def product(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """A product of two tensors; their common dimension is the last of the first."""
    left, right = args[:2]
    flops = 2 * result.numel() * left.shape[-1]
    return Work("matmul", flops, size(left, right), size(result), dtype_name(left.dtype))


def product_and_sum(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """A product added to a third tensor, which comes first."""
    added, left, right = args[:3]
    flops = 2 * result.numel() * left.shape[-1]
    return Work("matmul", flops, size(added, left, right), size(result), dtype_name(left.dtype))


FORMULAS: dict[Any, Formula] = {
    **dict.fromkeys((_aten.mm, _aten.bmm, _aten.mv, _aten.dot), product),
    **dict.fromkeys((_aten.addmm, _aten.baddbmm), product_and_sum),
}
