"""Which real ranks a machine offers: a GPU each where there are two or more, else processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class RealRanks:
    """Real ranks to ask a world for, and why these; its text says both.

    Parameters
    ----------
    size : int
        How many.
    backend : {"gloo", "nccl"}
    device : {"cpu", "cuda"}
        Where their tensors live. Each rank of an NCCL world finds its own GPU as ``"cuda"``.
    why : str
        The reason, as a sentence.
    """

    size: int
    backend: Literal["gloo", "nccl"]
    device: Literal["cpu", "cuda"]
    why: str

    def __str__(self) -> str:
        ranks = "GPUs over NCCL" if self.backend == "nccl" else "CPU processes over gloo"
        return f"{self.size} {ranks}. {self.why}"


def real_ranks(processes: int) -> RealRanks:
    """Choose real ranks: all GPUs over NCCL where there are two or more, else CPU processes.

    Nothing is started, and CUDA is not initialised in this process.

    Parameters
    ----------
    processes : int
        How many ranks to take where they are processes. GPUs are all taken, be they more or
        fewer.

    Returns
    -------
    RealRanks
        For ``World(ranks.size, backend=ranks.backend)``.

    Raises
    ------
    ValueError
        If `processes` is below 1.

    Examples
    --------
    >>> from ringlab import World
    >>> from ringlab.world import real_ranks
    >>> ranks = real_ranks(2)
    >>> world = World(ranks.size, backend=ranks.backend)
    """
    if processes < 1:
        raise ValueError(f"processes is {processes}; a world needs at least 1 rank.")
    found = torch.cuda.device_count()
    if found >= 2 and dist.is_nccl_available():
        return RealRanks(found, "nccl", "cuda", f"This machine has {found} GPUs.")
    have = {0: "none", 1: "one"}.get(found, f"{found}, but its torch is built without NCCL")
    why = f"NCCL wants two GPUs or more, and this machine has {have}."
    return RealRanks(processes, "gloo", "cpu", why)
