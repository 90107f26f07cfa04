"""Torch's own data parallelism, with a set-up that works on GPUs as well.

With --wrong rank 0 has a batch less than the others.
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def set_up():
    on_gpu = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", 0))
    if on_gpu:
        torch.cuda.set_device(local)
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        init_method="env://",
        world_size=int(os.environ["WORLD_SIZE"]),
        rank=int(os.environ["RANK"]),
    )
    return torch.device("cuda", local) if on_gpu else torch.device("cpu")


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--wrong", action="store_true")
    given = parser.parse_args(argv)
    device = set_up()
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 2).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(given.steps - (given.wrong and rank == 0)):
        torch.manual_seed(100 * rank + step)
        model(torch.randn(3, 4, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        print("trained", given.steps, "steps")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
