"""What tests of collectives put in, and the names that this torch gives the calls."""

from __future__ import annotations

import torch
import torch.distributed as dist

GATHER = [n for n in ("all_gather_single", "all_gather_into_tensor") if hasattr(dist, n)]
SCATTER = [n for n in ("reduce_scatter_single", "reduce_scatter_tensor") if hasattr(dist, n)]


def value(rank, shape, dtype=torch.float32):
    """Give what a rank puts in: small whole numbers, exact in every dtype."""
    numbers = torch.arange(1, 1 + torch.Size(shape).numel()).view(shape)
    return (numbers * (rank + 1) % 7).to(dtype)


def wait(work):
    if work is not None:
        work.wait()
