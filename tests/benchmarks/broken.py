"""Libraries that do what they should not: for tests of what compares them."""

from __future__ import annotations

import time

import torch.distributed as dist
from torch import Tensor

from benchmarks.peers.libraries.ours import Ringlab
from benchmarks.peers.problem import Problem


class Raises(Ringlab):
    """Its second rank raises, while the first waits for it."""

    name = "raises"

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if dist.get_rank() == 1:
            raise ValueError("no heads today")
        return super().attend(problem, q, k, v)


class Hangs(Ringlab):
    """It never comes back."""

    name = "hangs"

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        time.sleep(3600)
        return q


class Swaps(Ringlab):
    """It takes the keys for the values."""

    name = "swaps"

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(problem, q, v, k)
