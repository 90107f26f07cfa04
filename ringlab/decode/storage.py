"""Memory for the rows of one rank, which grows without a copy at every token."""

from __future__ import annotations

import torch
from torch import Tensor


class Storage:
    """Room for keys and values, [2, B, Hkv, room, D].

    Each head's rows lie one after the other, as kernels read them fastest. When the room is
    full it doubles, so a row is copied once more on average for all that growth.

    Parameters
    ----------
    batch, kv_heads, room, head_dim : int
    dtype : torch.dtype
    device : torch.device

    Attributes
    ----------
    tensor : Tensor
        Keys, then values; rows beyond those written hold anything.
    """

    def __init__(
        self,
        batch: int,
        kv_heads: int,
        room: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.tensor = _empty((2, batch, kv_heads, room, head_dim), dtype, device)

    def reserve(self, rows: int, used: int) -> None:
        """Make room for so many rows, of which the first `used` are kept."""
        old = self.tensor
        room = old.shape[3]
        if rows <= room:
            return
        shape = (*old.shape[:3], max(rows, 2 * room), old.shape[4])
        self.tensor = _empty(shape, old.dtype, old.device)
        self.tensor[:, :, :, :used].copy_(old[:, :, :, :used])


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # a tensor that may be written to in every mode
        return torch.empty(shape, dtype=dtype, device=device)
