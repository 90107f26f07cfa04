"""Two layers of a transformer's MLP, split over ranks; gradients compared with one device.

With --wrong the backward of the first layer sums the gradient on all ranks but the last.
"""

import sys

import torch
import torch.distributed as dist


class CopyToRanks(torch.autograd.Function):
    """Nothing forward, an all-reduce of the gradient backward."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        if "--wrong" not in sys.argv or dist.get_rank() < dist.get_world_size() - 1:
            dist.all_reduce(gradient)
        return gradient


class SumOverRanks(torch.autograd.Function):
    """An all-reduce forward, nothing backward."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


dist.init_process_group(backend="gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
assert device.type == "cpu", "this one is for CPUs"

torch.manual_seed(0)
hidden = 4 * size
up, down = torch.randn(hidden, 8, dtype=torch.float64), torch.randn(8, hidden, dtype=torch.float64)
x = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
alone = torch.tanh(x @ up.T) @ down.T
weight = torch.randn_like(alone)
(expected,) = torch.autograd.grad((alone * weight).sum(), x)

mine = slice(4 * rank, 4 * rank + 4)
y = SumOverRanks.apply(torch.tanh(CopyToRanks.apply(x) @ up[mine].T) @ down[:, mine].T)
torch.testing.assert_close(y, alone)
(y * weight).sum().backward()
torch.testing.assert_close(x.grad, expected)
dist.barrier()
dist.destroy_process_group()
