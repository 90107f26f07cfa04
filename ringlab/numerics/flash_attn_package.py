"""The ``flash_attn`` package where it is installed, adapted.

Its functions take and return [B, L, H, D].
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

import torch

from ringlab.numerics.fused import FusedKernel, cuda_problem
from ringlab.numerics.kernel import Gradients, Result
from ringlab.numerics.tile import Final, Operands

# Arguments of flash_attn 2.7 and later, in order.
_SHARED = ("dropout_p", "softmax_scale", "causal", "window_size_left", "window_size_right")
_EXPECTED = {
    "_flash_attn_forward": (
        *("q", "k", "v", *_SHARED, "softcap", "alibi_slopes", "return_softmax"),
    ),
    "_flash_attn_backward": (
        *("dout", "q", "k", "v", "out", "softmax_lse", "dq", "dk", "dv", *_SHARED),
        *("softcap", "alibi_slopes", "deterministic"),
    ),
}


@functools.cache
def _interface() -> Any:
    return importlib.import_module("flash_attn.flash_attn_interface")


def _parameters(function: Any) -> tuple[str, ...]:
    """Names of the arguments of a function or of a torch custom operator."""
    wrapped = getattr(function, "_init_fn", function)
    return tuple(inspect.signature(wrapped).parameters)


@functools.cache
def _problem() -> str | None:
    try:
        interface = _interface()
    except ImportError as error:
        return f"the package flash_attn cannot be imported ({error})"
    for name, expected in _EXPECTED.items():
        found = _parameters(getattr(interface, name, lambda: None))
        if found[: len(expected)] != expected:
            return f"{name} of the installed flash_attn is not that of version 2.7 or later"
    return None


class FlashAttnPackage(FusedKernel):
    """FlashAttention as its authors package it."""

    name = "flash_attn"

    def missing(self) -> str | None:
        """Check the package and the GPU."""
        return _problem() or cuda_problem((8, 0))

    def call(self, block: Operands) -> Result:
        """Run the package's forward."""
        q, k, v = (x.transpose(1, 2) for x in (block.q, block.k, block.v))
        found = _interface()._flash_attn_forward(
            q, k, v, *(0.0, block.scale, block.causal, -1, -1, 0.0, None, False)
        )
        return found[0].transpose(1, 2), found[1]

    def call_backward(self, block: Operands, final: Final) -> Gradients:
        """Run the package's backward, which writes into tensors it is given."""
        tensors = (final.dout, block.q, block.k, block.v, final.out)
        dout, q, k, v, out = (x.transpose(1, 2).contiguous() for x in tensors)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        exact = torch.are_deterministic_algorithms_enabled()
        options = (0.0, block.scale, block.causal, -1, -1, 0.0, None, exact)
        _interface()._flash_attn_backward(dout, q, k, v, out, final.lse, dq, dk, dv, *options)
        return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)
