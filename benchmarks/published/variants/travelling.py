"""How dK and dV travel in ring-flash-attention: in float32, W hops, home at last."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.published.hops import Hop


class Travelling:
    """The gradients of K and V that this rank adds to, and the hop that carries them on.

    Parameters
    ----------
    dk, dv : Tensor
        Of the first block.
    """

    def __init__(self, dk: Tensor, dv: Tensor) -> None:
        self._mine = [dk.to(torch.float32), dv.to(torch.float32)]
        self._free: list[Tensor] | None = None
        self._hop: Hop | None = None

    def arrive(self) -> list[Tensor]:
        """Wait for the gradients of the block whose K and V this rank has now."""
        assert self._hop is not None
        arrived = self._hop.wait()
        self._free, self._mine = self._mine, arrived
        return arrived

    def send(self) -> None:
        """Send them on; the buffers that were sent before are received into."""
        self._hop = Hop(self._mine, self._free)

    def home(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Wait for this rank's own."""
        dk, dv = self.arrive()
        return dk.to(dtype), dv.to(dtype)
