"""What a kernel must offer to compute a block of attention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from ringlab.numerics.tile import Final, Operands

Result = tuple[Tensor, Tensor]  # out [B, Hq, Lq, D], lse [B, Hq, Lq]
Gradients = tuple[Tensor, Tensor, Tensor]  # dq [B, Hq, Lq, D]; dk, dv [B, Hkv, Lk, D]


class Kernel(ABC):
    """One way to compute a block, adapted to the one canonical result.

    `forward` and `backward` are called with at least one query and one key; whatever the
    kernel underneath returns for an empty row, the adapter gives out = 0 and lse = -inf.
    """

    name: ClassVar[str]
    devices: ClassVar[frozenset[str]]  # device types; empty means every device
    dtypes: ClassVar[frozenset[torch.dtype]]
    partials: ClassVar[str]  # precision of a block's output before it is merged

    def missing(self) -> str | None:
        """Say why this machine cannot run the kernel at all; None if it can."""
        return None

    def refuses(self, q: Tensor, k: Tensor, causal: bool, masked: bool) -> str | None:
        """Say why the kernel cannot compute this block; None if it can."""
        if self.devices and q.device.type not in self.devices:
            return f"it runs on {', '.join(sorted(self.devices))}, not on {q.device.type}"
        if q.dtype not in self.dtypes:
            names = sorted(str(dtype).removeprefix("torch.") for dtype in self.dtypes)
            return f"it takes {', '.join(names)}, not {str(q.dtype).removeprefix('torch.')}"
        return None

    @abstractmethod
    def forward(self, block: Operands) -> Result:
        """Compute the output and the LSE, of any floating dtype."""

    @abstractmethod
    def backward(self, block: Operands, final: Final) -> Gradients:
        """Compute the block's gradients from the final out and lse, which it may not redo."""
