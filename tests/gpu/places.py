"""Where a test's body runs: on the CPU in the first tier, on GPUs where there are some."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from ringlab import World

every_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
)


@dataclass(frozen=True)
class Ranks:
    """Real ranks.

    Attributes
    ----------
    backend : {"gloo", "nccl"}
    size : int
        Or 0 for a rank more than there are GPUs, which share them, but three at least.
    """

    backend: str
    size: int

    @property
    def device(self) -> str:
        """Where their tensors lie."""
        return "cpu" if self.backend == "gloo" else "cuda"

    def start(self) -> World:
        """Start them; tensors that they make lie on their device."""
        if self.backend == "gloo":
            return World(self.size, backend="gloo", threads=1)
        if self.size:
            return World(self.size, backend="nccl", timeout=120.0)
        size = max(3, torch.cuda.device_count() + 1)
        return World(size, backend="nccl", share_gpu=True, timeout=120.0)


_patient = pytest.mark.timeout(600)  # many GPUs take their time to meet
ON_GPUS = [
    pytest.param(Ranks("nccl", 0), id="shared", marks=[pytest.mark.cuda, _patient]),
    *(
        pytest.param(
            Ranks("nccl", size), id=f"nccl-{size}", marks=[pytest.mark.nccl(count=size), _patient]
        )
        for size in (2, 3, 4, 8)
    ),
]
every_place = pytest.mark.parametrize(
    "place",
    [pytest.param(Ranks("gloo", 3), id="gloo", marks=pytest.mark.processes), *ON_GPUS],
    scope="module",
)
