"""A hop as published programs make it: each tensor a message of its own, all in one batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor


class Hop:
    """Messages to the next rank and from the previous one, on their way.

    Parameters
    ----------
    tensors : sequence of Tensor
        What is sent; it must not be written to before `wait`.
    into : sequence of Tensor, optional
        Where to receive; new buffers without it.
    """

    def __init__(self, tensors: Sequence[Tensor], into: Sequence[Tensor] | None = None) -> None:
        rank, size = dist.get_rank(), dist.get_world_size()
        self._received = [torch.empty_like(x) for x in tensors] if into is None else list(into)
        messages = []
        for sent, received in zip(tensors, self._received, strict=True):
            messages.append(dist.P2POp(dist.isend, sent, (rank + 1) % size))
            messages.append(dist.P2POp(dist.irecv, received, (rank - 1) % size))
        self._works = dist.batch_isend_irecv(messages)

    def wait(self) -> list[Tensor]:
        """Wait for all of them, and return what has come."""
        for work in self._works:
            work.wait()
        return self._received
