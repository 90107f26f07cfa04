"""One hop: a few messages as one batch, and the collectives under every torch's spelling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.timeline import region

Message = tuple[Tensor, int]
"""A contiguous tensor and the group rank at the other end."""


def exchange(
    sends: Sequence[Message], recvs: Sequence[Message], group: dist.ProcessGroup
) -> list[Any]:
    """Start a hop and return its handles, each to be waited for exactly once.

    Parameters
    ----------
    sends, recvs : sequence of (Tensor, int)
        Messages of no elements are left out; both ends know the sizes, so both do so.
    group : ProcessGroup

    Notes
    -----
    All operations go into one ``batch_isend_irecv``, so that no order of theirs can make two
    ranks wait for each other; peers are ranks of the group, never of the world.
    """
    operations = [
        dist.P2POp(operation, tensor, group=group, group_peer=peer)
        for operation, messages in ((dist.isend, sends), (dist.irecv, recvs))
        for tensor, peer in messages
        if tensor.numel()
    ]
    return dist.batch_isend_irecv(operations) if operations else []


def all_gather(output: Tensor, tensor: Tensor, group: dist.ProcessGroup) -> None:
    """Gather one contiguous tensor a rank into `output`, along its first dimension."""
    new = hasattr(dist, "all_gather_single")
    gather = dist.all_gather_single if new else dist.all_gather_into_tensor
    gather(output, tensor, group=group)


def gather_blocks(k: Tensor, v: Tensor, lengths: Sequence[int], group: dist.ProcessGroup) -> Tensor:
    """K and V of all ranks, [W, 2, B, Hkv, Lmax, D]; of no elements if there is none to gather.

    What is beyond a rank's length is padding, which nobody writes or reads.
    """
    longest = max(lengths) if len(lengths) > 1 else 0
    own = torch.empty((2, *k.shape[:2], longest, k.shape[3]), dtype=k.dtype, device=k.device)
    everything = torch.empty((len(lengths), *own.shape), dtype=k.dtype, device=k.device)
    if own.numel():
        with region("copy"):
            for target, part in zip(own, (k, v), strict=True):
                target[:, :, : part.shape[2]].copy_(part)
        all_gather(everything.flatten(0, 1), own, group)
    return everything


def reduce_scatter(output: Tensor, tensor: Tensor, group: dist.ProcessGroup) -> None:
    """Sum `tensor` over the ranks and keep the rank's own chunk of its first dimension."""
    new = hasattr(dist, "reduce_scatter_single")
    scatter = dist.reduce_scatter_single if new else dist.reduce_scatter_tensor
    scatter(output, tensor, group=group)


def all_to_all(
    output: Tensor,
    tensor: Tensor,
    received: Sequence[int],
    sent: Sequence[int],
    group: dist.ProcessGroup,
) -> None:
    """Exchange rows of the first dimension, `sent[r]` to rank r and `received[r]` from it."""
    dist.all_to_all_single(output, tensor, list(received), list(sent), group=group)
