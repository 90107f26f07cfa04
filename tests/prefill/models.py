"""A small model that trains on one device or on the shards of a sequence."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ringlab import ZigZag
from tests.prefill.cases import Attend

WIDTH, HEADS = 24, 4


class Block(nn.Module):
    """A layer of attention over tokens x [B, L, C]; without a method, on one device."""

    def __init__(self, method: Attend | None) -> None:
        super().__init__()
        self.method = method
        self.project = nn.Linear(WIDTH, 2 * WIDTH)  # queries, and half as many heads of K and V
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.project(x).unflatten(-1, (2 * HEADS, -1)).transpose(1, 2)
        q, k, v = heads.split((HEADS, HEADS // 2, HEADS // 2), dim=1)
        if self.method is None:
            y = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            y = self.method(q, k, v, layout=ZigZag(), causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


def model(method: Attend | None) -> nn.Sequential:
    """Two layers with the same weights on every rank, in float64."""
    torch.manual_seed(0)
    return nn.Sequential(Block(method), nn.Tanh(), Block(method)).double()


class Log(NamedTuple):
    """What training left behind: the loss of each step, and the gradients of each."""

    losses: list[Tensor]
    gradients: list[list[Tensor]]


def data(length: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets, [B, L, C]."""
    draw = torch.Generator().manual_seed(1)
    x, target = torch.randn(2, 2, length, WIDTH, generator=draw, dtype=torch.float64).unbind()
    return x, target


def train(
    net: nn.Module, x: Tensor, target: Tensor, *, scale: float, steps: int, summed: bool = False
) -> Log:
    """Train by SGD on a loss that is a sum over tokens, times `scale`.

    With `summed` the ranks add up their losses and gradients by hand.
    """
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    log = Log([], [])
    for _ in range(steps):
        optimizer.zero_grad()
        loss = scale * (net(x) - target).square().sum()
        loss.backward()
        total = loss.detach().clone()
        if summed:
            for tensor in (total, *(p.grad for p in net.parameters())):
                dist.all_reduce(tensor)
        log.losses.append(total)
        log.gradients.append([whole(p.grad) for p in net.parameters()])
        optimizer.step()
    return log


def whole(x: Any) -> Tensor:
    """All of a tensor that FSDP may hold in parts."""
    return (x.full_tensor() if hasattr(x, "full_tensor") else x).detach().clone()


def assert_same_gradients(found: Log, expected: Log) -> None:
    for mine, theirs in zip(found.gradients, expected.gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)
