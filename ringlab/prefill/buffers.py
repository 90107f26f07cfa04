"""Room for what travels: blocks of K and V, and parcels of gradients and blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ringlab.calls.exchange import Message
from ringlab.prefill.plan import Plan
from ringlab.timeline import region


class BlockBuffer:
    """Room for the K and V of any rank, in one piece; allocated when first used.

    Parameters
    ----------
    k : Tensor
        [B, Hkv, L, D]; gives B, Hkv, D, dtype and device.
    lengths : sequence of int
        Tokens of each rank.
    """

    def __init__(self, k: Tensor, lengths: Sequence[int]) -> None:
        self._like, self._lengths = k, lengths
        self._longest = max(lengths)
        self._room: Tensor | None = None
        self._views: dict[int, Tensor] = {}

    def block(self, source: int) -> Tensor:
        """The block of `source`, [2, B, Hkv, Ls, D]: keys, then values."""
        length = self._lengths[source]
        if length not in self._views:
            self._views[length] = self._view(length)
        return self._views[length]

    def _view(self, length: int) -> Tensor:
        k = self._like
        if self._room is None:
            self._room = torch.empty(_shape(k, self._longest), dtype=k.dtype, device=k.device)
        if length == self._longest:
            return self._room
        shape = _shape(k, length)
        return self._room.view(-1)[: math.prod(shape)].view(shape)


class Parcel:
    """A byte buffer that holds the dK and dV of one rank and, behind them, the K and V of another.

    The two differ in dtype and travel as one message. The wider dtype stands first, so that
    both are aligned without padding.

    Parameters
    ----------
    k : Tensor
        [B, Hkv, L, D]; gives B, Hkv, D, the dtype of K and V, and the device.
    kind : torch.dtype
        Of dK and dV.
    plan : Plan
        Gives the length of each rank's block.

    Attributes
    ----------
    dkv : Tensor
        [2, B, Hkv, Ls, D] in `kind`.
    kv : Tensor
        [2, B, Hkv, Ls', D] in the dtype of `k`.
    """

    dkv: Tensor
    kv: Tensor

    def __init__(self, k: Tensor, kind: torch.dtype, plan: Plan) -> None:
        self._k, self._kind, self._lengths = k, kind, plan.lengths
        self._bytes: Tensor | None = None

    def load(self, gradients_of: int | None, block_of: int | None) -> Parcel:
        """Lay the buffer out for the dK and dV of one rank and the K and V of another."""
        dkv_shape = _shape(self._k, 0 if gradients_of is None else self._lengths[gradients_of])
        kv_shape = _shape(self._k, 0 if block_of is None else self._lengths[block_of])
        self._split = math.prod(dkv_shape) * self._kind.itemsize
        self._end = self._split + math.prod(kv_shape) * self._k.dtype.itemsize
        flat = self._room()
        self.dkv = flat[: self._split].view(self._kind).view(dkv_shape)
        self.kv = flat[self._split : self._end].view(self._k.dtype).view(kv_shape)
        return self

    def message(self, with_dkv: bool, with_kv: bool, peer: int) -> list[Message]:
        """The part of the buffer that one message carries."""
        if not (with_dkv or with_kv):
            return []
        start, stop = 0 if with_dkv else self._split, self._end if with_kv else self._split
        return [(self._room()[start:stop], peer)]

    def _room(self) -> Tensor:
        if self._bytes is None:
            longest = math.prod(_shape(self._k, max(self._lengths)))
            room = longest * (self._kind.itemsize + self._k.dtype.itemsize)
            self._bytes = torch.empty(room, dtype=torch.uint8, device=self._k.device)
        return self._bytes


def pack(block: Tensor, k: Tensor, v: Tensor) -> None:
    """Copy keys and values, [B, H, L, D] with any strides, into one block [2, B, H, L, D]."""
    # Not torch.stack(out=): on meta tensors it loads the compiler, which takes seconds.
    with region("copy"):
        block[0].copy_(k)
        block[1].copy_(v)


def _shape(k: Tensor, length: int) -> tuple[int, ...]:
    """[2, B, Hkv, length, D]: two tensors like `k`."""
    return 2, k.shape[0], k.shape[1], length, k.shape[3]
