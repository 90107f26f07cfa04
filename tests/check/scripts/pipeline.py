"""A pipeline of layers, one a rank: micro-batches go forward, gradients come back.

With --wrong the first stage waits for one gradient more than the next one sends.
"""

import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--micro-batches", type=int, default=3)
parser.add_argument("--wrong", action="store_true")
arguments = parser.parse_args()

dist.init_process_group("gloo", init_method="env://")
rank, size = dist.get_rank(), int(os.environ["WORLD_SIZE"])
first, last = rank == 0, rank == size - 1
torch.manual_seed(rank)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

kept = []
for _ in range(arguments.micro_batches):
    x = torch.randn(2, 4)
    if not first:
        dist.recv(x, rank - 1)
        x.requires_grad_()
    y = layer(x)
    if not last:
        dist.send(y.detach(), rank + 1)
    kept.append((x, y))

for x, y in reversed(kept):
    gradient = torch.empty_like(y)
    if last:
        gradient = 2 * y.detach()
    else:
        dist.recv(gradient, rank + 1)
    y.backward(gradient)
    if not first:
        dist.send(x.grad, rank - 1)
if first and arguments.wrong:
    dist.recv(torch.empty(2, 4), rank + 1)
optimizer.step()
dist.destroy_process_group()
