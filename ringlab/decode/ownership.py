"""Which row of which rank holds a token, in closed form: owners do not depend on the length."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ringlab.layout import Interleaved

Index = TypeVar("Index", int, Tensor, npt.NDArray[np.int64])


def owner_of(position: Index, layout: Interleaved, world_size: int) -> Index:
    """Rank that owns a global position, or each of a tensor of positions."""
    return position // layout.block % world_size


def row_of(position: Index, layout: Interleaved, world_size: int) -> Index:
    """Local row of a global position on the rank that owns it."""
    block = layout.block
    return position // (block * world_size) * block + position % block


def position_of(row: Index, layout: Interleaved, rank: int, world_size: int) -> Index:
    """Global position of a local row of a rank."""
    block = layout.block
    return (row // block * world_size + rank) * block + row % block
