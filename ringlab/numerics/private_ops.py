"""The private operators of torch that return or accept an LSE, checked before use.

They are not public and may change. Each is compared once with the schema that the adapters
were written for: a call written for that schema must still mean the same.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

_QKV = "Tensor query, Tensor key, Tensor value"
_SAVED = f"Tensor grad_out, {_QKV}, Tensor out, Tensor logsumexp"
_LENGTHS = "Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k"
_SEED = "Tensor philox_seed, Tensor philox_offset"
_CALL = "float dropout_p=0., bool is_causal=False"

SCHEMAS = {
    "_scaled_dot_product_flash_attention_for_cpu": (
        f"({_QKV}, {_CALL}, *, Tensor? attn_mask=None, float? scale=None)"
        " -> (Tensor output, Tensor logsumexp)"
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        f"({_SAVED}, float dropout_p, bool is_causal, *, Tensor? attn_mask=None,"
        " float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"
    ),
    "_scaled_dot_product_flash_attention": (
        f"({_QKV}, {_CALL}, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output,"
        f" Tensor logsumexp, {_LENGTHS}, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)"
    ),
    "_scaled_dot_product_flash_attention_backward": (
        f"({_SAVED}, {_LENGTHS}, float dropout_p, bool is_causal, {_SEED}, *, float? scale=None)"
        " -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"
    ),
    "_scaled_dot_product_cudnn_attention": (
        f"({_QKV}, Tensor? attn_bias, bool compute_log_sumexp, {_CALL},"
        " bool return_debug_mask=False, *, float? scale=None) -> (Tensor output,"
        f" Tensor logsumexp, {_LENGTHS}, {_SEED}, Tensor debug_attn_mask)"
    ),
    "_scaled_dot_product_cudnn_attention_backward": (
        f"({_SAVED}, {_SEED}, Tensor attn_bias, {_LENGTHS}, float dropout_p, bool is_causal, *,"
        " float? scale=None) -> (Tensor, Tensor, Tensor)"
    ),
}


@functools.cache
def problem(name: str) -> str | None:
    """Say why the private operator `name` of the installed torch cannot be used, or None."""
    found = getattr(torch.ops.aten, name, None)
    if found is None:
        return f"torch {torch.__version__} has no operator aten::{name}"
    expected = torch._C.parse_schema(f"aten::{name}{SCHEMAS[name]}")
    installed = found.default._schema
    if not _compatible(installed, expected):
        return (
            f"torch {torch.__version__} declares {installed} where ringlab was written for "
            f"{expected}"
        )
    return None


def _compatible(installed: Any, expected: Any) -> bool:
    """Whether a call and an unpacking written for `expected` fit `installed`.

    Names of results do not count: versions of torch differ in them.
    """
    wanted, found = expected.arguments, installed.arguments
    given = [(x.name, str(x.type)) for x in wanted if not x.kwarg_only]
    taken = [(x.name, str(x.type)) for x in found if not x.kwarg_only]
    named = {x.name: str(x.type) for x in wanted}
    return (
        taken[: len(given)] == given
        and named.items() <= {x.name: str(x.type) for x in found}.items()
        and all(x.has_default_value() for x in found if x.name not in named)
        and [str(x.type) for x in installed.returns] == [str(x.type) for x in expected.returns]
    )


def first_problem(*names: str) -> str | None:
    """Say what is wrong with the first of several operators that cannot be used, or None."""
    return next((reason for reason in map(problem, names) if reason), None)


def operator(name: str) -> Any:
    """Return the private operator `name`."""
    return getattr(torch.ops.aten, name).default


def matrix_unit_takes(dtype: torch.dtype) -> bool:
    """Whether this CPU multiplies matrices of 16-bit `dtype` in hardware (Intel AMX)."""
    names = {
        torch.bfloat16: "_is_amx_tile_supported",
        torch.float16: "_is_amx_fp16_supported",
    }
    probe = getattr(torch.cpu, names.get(dtype, ""), None)
    return bool(probe()) if probe is not None else False
