"""The ranks compare notes: one small all-gather of eight integers a rank."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calls.exchange import all_gather
from ringlab.layout import Layout

HANDSHAKE_BYTES = 64
"""Bytes that each rank tells every other when `length` is not given."""


def fingerprint(layout: Layout) -> int:
    """Checksum of a layout, equal in all processes that made an equal one."""
    cls = type(layout)
    plain = cls.__repr__ is object.__repr__  # it shows an address
    text = f"{cls.__module__}.{cls.__qualname__}" if plain else repr(layout)
    return zlib.crc32(text.encode())


def tell(
    words: Sequence[int], group: dist.ProcessGroup, device: torch.device
) -> list[Sequence[int]]:
    """Give each rank's eight integers, in group order."""
    if group.size() == 1:
        return [words]
    where = device if device.type == "cuda" else torch.device("cpu")
    mine = torch.tensor(words, dtype=torch.int64, device=where)
    theirs: Tensor = torch.empty(group.size() * len(mine), dtype=torch.int64, device=where)
    all_gather(theirs, mine, group)
    told: list[Sequence[int]] = theirs.view(group.size(), -1).tolist()
    return told
