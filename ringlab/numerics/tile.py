"""The operands of one block of attention, as kernels take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Operands:
    """Queries, keys, values, which pairs of them may attend, and the scale of the scores.

    ``q`` is [B, Hq, Lq, D], ``k`` and ``v`` [B, Hkv, Lk, D]. With ``causal`` query i sees
    keys 0 to i, aligned at the top left, also when there are more or fewer keys than
    queries. ``mask`` is boolean [Lq, Lk], True where a query may attend. With neither,
    every pair is allowed.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    causal: bool
    mask: Tensor | None
    scale: float

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.q.shape[1] // self.k.shape[1]

    def allowed(self) -> Tensor | None:
        """Boolean [Lq, Lk], or None where every pair is allowed."""
        if self.causal:
            shape = (self.q.shape[2], self.k.shape[2])
            return torch.ones(shape, dtype=torch.bool, device=self.q.device).tril()
        return self.mask

    def to(self, dtype: torch.dtype) -> Operands:
        """Convert queries, keys and values."""
        return replace(self, q=self.q.to(dtype), k=self.k.to(dtype), v=self.v.to(dtype))

    def corner(self, side: int) -> Operands:
        """Return the first `side` queries and keys."""
        q, k, v = (x[:, :, :side] for x in (self.q, self.k, self.v))
        return replace(self, q=q, k=k, v=v)

    def pieces(self, size: int) -> Iterator[Operands]:
        """Divide the keys of a block that is not causal into pieces of `size`."""
        for start in range(0, self.k.shape[2], size):
            keys = slice(start, start + size)
            mask = None if self.mask is None else self.mask[:, keys]
            yield replace(self, k=self.k[:, :, keys], v=self.v[:, :, keys], mask=mask)

    def below(self, row: int) -> Operands:
        """Return the queries from `row` on, which see every key."""
        return replace(self, q=self.q[:, :, row:], causal=False)


@dataclass(frozen=True)
class Final:
    """The result over all blocks, and the gradient of it: what backward starts from.

    ``dout`` and ``out`` are [B, Hq, Lq, D], ``lse`` is [B, Hq, Lq].
    """

    dout: Tensor
    out: Tensor
    lse: Tensor

    def to(self, dtype: torch.dtype) -> Final:
        """Convert the output and its gradient."""
        return replace(self, dout=self.dout.to(dtype), out=self.out.to(dtype))

    def rows(self, start: int, stop: int | None = None) -> Final:
        """Return queries `start` to `stop`."""
        return Final(*(x[:, :, start:stop] for x in (self.dout, self.out, self.lse)))


def few_queries(q: Tensor, k: Tensor) -> bool:
    """Whether reading the keys takes longer than computing on them, as in decode.

    That is so for up to 32 rows of queries for each KV head.
    """
    return q.shape[1] * q.shape[2] // k.shape[1] <= 32 < k.shape[2]


def causal_pairs(queries: int, keys: int) -> int:
    """Count the pairs of a top-left aligned causal tile, exactly.

    The triangle of the first min(queries, keys) rows, and full rows below it.
    """
    side = min(queries, keys)
    return side * (side + 1) // 2 + (queries - side) * keys
