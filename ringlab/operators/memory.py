"""Operators that do nothing but read and write, where their tags do not say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ringlab.operators.sizes import Formula, dtype_name, free, moved, size, written
from ringlab.timeline import Work

_aten: Any = torch.ops.aten

_ALLOCATIONS = (
    "empty empty_like empty_strided new_empty new_empty_strided resize_ set_ detach detach_ alias "
    "lift_fresh lift _unsafe_view _reshape_alias is_same_size sym_size sym_numel sym_stride"
)
_FILLS = (
    "zeros zeros_like ones ones_like full full_like arange linspace eye rand rand_like randn "
    "randn_like randint randint_like randperm new_zeros new_ones new_full scalar_tensor "
    "tril_indices triu_indices fill_ zero_ normal_ uniform_ random_ bernoulli_ exponential_"
)
_MOVES = (
    "clone _to_copy cat stack contiguous index index_select gather scatter scatter_add index_put "
    "index_copy_ index_add_ index_fill_ masked_select masked_scatter embedding "
    "embedding_dense_backward constant_pad_nd roll flip repeat tril triu sort argsort topk cumsum "
    "logcumsumexp nonzero sum mean amax amin max min argmax argmin any all prod var std var_mean "
    "logsumexp norm linalg_vector_norm _softmax _safe_softmax _softmax_backward_data _log_softmax "
    "_log_softmax_backward_data softmax native_layer_norm native_layer_norm_backward "
    "_fused_rms_norm rms_norm select_backward slice_backward slice_scatter select_scatter equal "
    "isfinite _local_scalar_dense item native_dropout nll_loss_forward nll_loss_backward fill "
    "scatter_reduce searchsorted bucketize multinomial cumprod native_group_norm "
    "native_dropout_backward repeat_interleave bincount renorm floor_divide"
)


def _every(names: str) -> list[Any]:
    """The operators of these names that the installed torch has."""
    found = (getattr(_aten, name, None) for name in names.split())
    return [operator for operator in found if operator is not None]


def copy(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """Read the source, write the target."""
    target, source = args[:2]
    return Work("memory", 0, size(source), size(target), dtype_name(target.dtype))


FORMULAS: dict[Any, Formula] = {
    **dict.fromkeys(_every(_ALLOCATIONS), free),
    **dict.fromkeys(_every(_FILLS), written),
    **dict.fromkeys(_every(_MOVES), moved),
    _aten.copy_: copy,
}
