"""The ranks compare notes: one small all-gather that finds calls that do not fit together."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from ringlab.calls.checks import DTYPES, short
from ringlab.calls.notes import tell
from ringlab.layout import Layout
from ringlab.numerics.kernels import KERNELS

_KERNELS = (None, *KERNELS)


@dataclass(frozen=True)
class Note:
    """What a rank tells the others of its call; everything but `tokens` must be equal.

    Attributes
    ----------
    tokens : int
        Tokens on the rank.
    batch, query_heads, kv_heads, head_dim : int
    dtype : torch.dtype
    kernel : str or None
    causal : bool
    gradients : bool
        Whether the rank will run a backward, which needs all ranks.
    scale : float
    layout : int
        Checksum of what the layout is.
    """

    tokens: int
    batch: int
    query_heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    kernel: str | None
    causal: bool
    gradients: bool
    scale: float
    layout: int

    def pack(self) -> list[int]:
        """Write it as eight integers."""
        options = (DTYPES.index(self.dtype), _KERNELS.index(self.kernel))
        flags = options[0] | options[1] << 8 | self.causal << 16 | self.gradients << 17
        (scale,) = struct.unpack("<q", struct.pack("<d", self.scale))
        return [self.tokens, self.batch, self.query_heads, self.kv_heads, self.head_dim, flags,
                scale, self.layout]  # fmt: skip

    @classmethod
    def unpack(cls, words: Sequence[int]) -> Note:
        """Read what `pack` wrote."""
        tokens, batch, query_heads, kv_heads, head_dim, flags, bits, layout = words
        (scale,) = struct.unpack("<d", struct.pack("<q", bits))
        return cls(tokens, batch, query_heads, kv_heads, head_dim, DTYPES[flags & 255],
                   _KERNELS[flags >> 8 & 255], bool(flags >> 16 & 1), bool(flags >> 17 & 1),
                   scale, layout)  # fmt: skip


_SHOWN: tuple[tuple[str, Callable[[Note], object]], ...] = (
    ("the batch size B", lambda note: note.batch),
    ("the number of query heads", lambda note: note.query_heads),
    ("the number of KV heads", lambda note: note.kv_heads),
    ("the head dimension D", lambda note: note.head_dim),
    ("the dtype", lambda note: short(note.dtype)),
    ("kernel", lambda note: note.kernel),
    ("causal", lambda note: note.causal),
    ("scale", lambda note: note.scale),
    ("whether q, k or v requires a gradient", lambda note: note.gradients),
)


def agree(
    name: str, note: Note, layout: Layout, group: dist.ProcessGroup, device: torch.device
) -> tuple[int, ...]:
    """Compare notes; every rank reaches the same verdict.

    Returns
    -------
    tuple of int
        Tokens of each rank.

    Raises
    ------
    ValueError
        On every rank, if the calls do not fit together; it shows what each rank has.
    """
    notes = [Note.unpack(words) for words in tell(note.pack(), group, device)]
    for what, value in _SHOWN:
        values = [value(other) for other in notes]
        if any(other != values[0] for other in values):
            raise ValueError(
                f"{name}: the ranks do not agree on {what}: rank by rank it is {values}. All "
                "ranks of the group must make the same call on shards of one tensor."
            )
    if len({other.layout for other in notes}) > 1:
        raise ValueError(
            f"{name}: the ranks do not agree on the layout; on this rank it is {layout}. All "
            "ranks of the group must pass the same one."
        )
    return tuple(other.tokens for other in notes)
