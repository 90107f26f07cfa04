"""How a script joins the ranks that torchrun has started."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist


def join() -> torch.device:
    """Join the default group and give this rank's device: a GPU each with NCCL, else gloo."""
    if "LOCAL_RANK" not in os.environ:
        raise SystemExit("start it by torchrun: torchrun --standalone --nproc-per-node=2 SCRIPT")
    if torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"]):
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        # With a device the communicator is made here, by all ranks, and not in the first hop.
        dist.init_process_group("nccl", device_id=device)
        return device
    dist.init_process_group("gloo")
    return torch.device("cpu")
