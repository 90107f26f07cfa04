"""Which GPU each rank gets, and refusals in words where there are too few."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist


def count() -> int:
    """GPUs that this process may use.

    torch asks the driver's library for this, which does not start CUDA in this process, and
    heeds ``CUDA_VISIBLE_DEVICES``.
    """
    return torch.cuda.device_count()


def assign(size: int, share: bool) -> tuple[str, list[int]]:
    """Give each rank of an NCCL world a GPU.

    Parameters
    ----------
    size : int
        Number of ranks.
    share : bool
        Whether more ranks than GPUs are wanted.

    Returns
    -------
    backend : {"nccl", "staged"}
        ``"staged"`` where ranks share GPUs, which NCCL refuses.
    devices : list of int
        Index of each rank's GPU, as torch counts in this process.

    Raises
    ------
    ValueError
        If there are fewer GPUs than ranks.
    """
    found = count()
    if not found:
        raise ValueError(f"backend='nccl' needs GPUs: {_why_none()} {_INSTEAD}")
    if found >= size:
        if not dist.is_nccl_available():
            raise ValueError(
                f"backend='nccl': this torch ({torch.__version__}) is built without NCCL, which "
                f"exists for Linux only. {_INSTEAD}"
            )
        return "nccl", list(range(size))
    if not share:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        by = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible!r})"
        raise ValueError(
            f"{size} NCCL ranks need {size} GPUs, one each, and this process may use {found}{by}. "
            f"Use World({found}, backend='nccl'), or share_gpu=True, which lets ranks share a GPU "
            "and exchange through host memory (slower), or backend='gloo' for CPU processes."
        )
    return "staged", [rank % found for rank in range(size)]


_INSTEAD = "Use backend='gloo' for CPU processes, or the virtual world."


def _why_none() -> str:
    if torch.version.cuda is None:
        kind = "macOS" if sys.platform == "darwin" else "a CPU build"
        return f"this torch ({torch.__version__}, {kind}) has no CUDA."
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return f"none is visible with CUDA_VISIBLE_DEVICES={visible!r}."
    return "torch finds none (`ringlab doctor` says what the driver finds)."
