"""The parts of a global tensor: what fits together, and the way back to global order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def dimension(x: Tensor, dim: int) -> int:
    """Give ``dim`` counted from the front, or refuse it."""
    if not -x.dim() <= dim < x.dim():
        raise ValueError(f"a tensor of shape {list(x.shape)} has no dimension {dim}.")
    return dim % x.dim()


def check_shards(shards: Sequence[Tensor], dim: int, lengths: Sequence[int]) -> None:
    """Refuse parts that are not what a layout with these lengths cut from one tensor."""
    first = shards[0]
    for rank, (shard, length) in enumerate(zip(shards, lengths, strict=True)):
        expected = [*first.shape[:dim], length, *first.shape[dim + 1 :]]
        if list(shard.shape) != expected:
            raise ValueError(
                f"the part of rank {rank} has shape {list(shard.shape)}, but {expected} fits a "
                f"sequence of {sum(lengths)} tokens on {len(lengths)} ranks; pass the parts as "
                "shard() gave them, one a rank, in rank order."
            )
        if shard.dtype != first.dtype or shard.device != first.device:
            raise ValueError(
                f"the part of rank {rank} is {shard.dtype} on {shard.device}, that of rank 0 "
                f"{first.dtype} on {first.device}; bring them to one dtype and device."
            )


def global_order(positions: Sequence[Tensor]) -> Tensor:
    """Find where in the concatenated parts each global position stands.

    Parameters
    ----------
    positions : sequence of Tensor
        Each part's global positions, int64 on the CPU.

    Returns
    -------
    Tensor
        int64 ``[total]``: ``cat(parts)[order]`` is in global order.

    Raises
    ------
    ValueError
        If a position belongs to no part.
    """
    placed = torch.cat(list(positions))
    order = torch.full((len(placed),), -1, device="cpu")
    order[placed] = torch.arange(len(placed), device="cpu")
    if len(order) > 0 and int(order.min()) < 0:
        raise ValueError(
            f"position {int(order.argmin())} of {len(order)} is on no rank, so another is on "
            "several; the layout's runs() must give every position to exactly one rank."
        )
    return order
