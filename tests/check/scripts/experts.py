"""Tokens go to the rank of their expert and come back, with gradients.

With --wrong the backward sends the gradients along the same way as the tokens, not back.
"""

import sys

import torch
import torch.distributed as dist


class Dispatch(torch.autograd.Function):
    """Rows to the ranks that they are for; backward, their gradients the other way."""

    @staticmethod
    def forward(ctx, rows, sent, received):
        ctx.splits = sent, received
        out = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(out, rows.contiguous(), received, sent)
        return out

    @staticmethod
    def backward(ctx, gradient):
        sent, received = ctx.splits
        if "--wrong" in sys.argv:
            sent, received = received, sent
        back = gradient.new_empty(sum(sent), gradient.shape[1])
        dist.all_to_all_single(back, gradient.contiguous(), sent, received)
        return back, None, None


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
tokens = torch.randn(5 + rank, 4, requires_grad=True)
expert = torch.randint(size, (len(tokens),))
expert[0] = (rank + 1) % size
order = expert.argsort(stable=True)
sent = torch.bincount(expert, minlength=size)
received = torch.empty_like(sent)
dist.all_to_all_single(received, sent)
splits = sent.tolist(), received.tolist()
there = Dispatch.apply(tokens[order], *splits)
back = Dispatch.apply((rank + 1) * there, *splits[::-1])
torch.testing.assert_close(back, (expert[order] + 1)[:, None] * tokens[order])
back.sum().backward()
torch.testing.assert_close(tokens.grad, (expert + 1.0)[:, None].expand_as(tokens))
dist.destroy_process_group()
