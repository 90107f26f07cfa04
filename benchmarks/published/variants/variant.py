"""What a published program is to the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ringlab.layout import Layout

Saved = tuple[Tensor, ...]
"""What a forward keeps for its backward."""


@dataclass(frozen=True)
class Variant:
    """A published program: the same kernels, messages and passes over memory, in few lines.

    Parameters
    ----------
    name : str
    layout : Layout
        How it deals out tokens.
    causal : bool
    forward : callable
        From q [B, Hq, L, D], k and v [B, Hkv, L, D] to the output and what backward needs.
    backward : callable
        From the gradient of the output and that to the gradients of q, k and v.
    source : str
        Repository, file and commit it follows.
    differs : str
        What is not as there.
    """

    name: str
    layout: Layout
    causal: bool
    forward: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Saved]]
    backward: Callable[[Tensor, Saved], tuple[Tensor, Tensor, Tensor]]
    source: str
    differs: str
