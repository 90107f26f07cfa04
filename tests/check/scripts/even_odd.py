"""Neighbours exchange their borders, in two rounds that even and odd ranks begin differently.

With --wrong all ranks send first.
"""

import sys

import torch
import torch.distributed as dist


def exchange(field, other, sends_first):
    mine, theirs = field.clone(), torch.empty_like(field)
    for sends in (sends_first, not sends_first):
        if sends:
            dist.send(mine, other)
        else:
            dist.recv(theirs, other)
    return theirs


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    field = torch.full((8,), float(rank))
    for step in range(4):
        to_the_right = rank % 2 == step % 2
        other = rank + 1 if to_the_right else rank - 1
        if 0 <= other < size:
            field += 0.5 * exchange(field, other, to_the_right or "--wrong" in sys.argv)
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
