"""The ``ringlab`` namespace of torch operators, and how an operator is added to it.

Defined with the low-level library interface because a call then costs about 10
microseconds; the decorator ``torch.library.custom_op`` costs two to three times that,
and a simulation of many ranks on meta tensors makes tens of thousands of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_LIBRARY = torch.library.Library("ringlab", "FRAGMENT")


def define(schema: str, run: Callable[..., Any], meta: Callable[..., Any]) -> Any:
    """Add an operator: `run` on every real device, `meta` where there are only shapes."""
    name = _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    _LIBRARY.impl(name, meta, "Meta")
    return getattr(torch.ops.ringlab, name).default


def refuse_autograd(*tensors: Tensor) -> None:
    """Raise where autograd would record a call that it cannot differentiate.

    Raises
    ------
    RuntimeError
        If grad mode is on and one of `tensors` requires a gradient.
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(
            "A block of attention cannot be differentiated on its own: its gradient needs the "
            "output and LSE of all blocks merged. Use ringlab.ring_attention, which is "
            "differentiable, or call attend and merge under torch.no_grad() and then "
            "attend_backward with the final out and lse."
        )
