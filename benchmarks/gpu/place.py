"""Where it runs: the GPUs of this machine, and the ranks that they can carry."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from ringlab import World
from ringlab.bench.machine import facts

DEADLINE = 600.0
TRY = (
    "to try the program without a GPU, on tiny problems: "
    "python -m benchmarks.gpu --device cpu --tiny"
)


@dataclass(frozen=True)
class Place:
    """Devices, and how many ranks share them.

    Attributes
    ----------
    device : {"cuda", "cpu"}
    ranks : int
    devices : int
        Of the ranks together: GPUs, or on a CPU the ranks themselves, with a thread each.
    """

    device: str
    ranks: int
    devices: int

    @property
    def shared(self) -> bool:
        """Whether ranks share a GPU, and send through the memory of the host."""
        return self.ranks > self.devices

    def world(self) -> World:
        """Start the ranks; tensors that they make lie on their device."""
        if self.device == "cpu":
            return World(self.ranks, backend="gloo", threads=1, timeout=DEADLINE)
        return World(self.ranks, backend="nccl", share_gpu=self.shared, timeout=DEADLINE)

    def facts(self) -> dict[str, Any]:
        """Tell the machine, its GPUs, and the versions."""
        found: dict[str, Any] = {**facts(), "device": self.device, "ranks": self.ranks}
        found["devices"] = self.devices
        if self.device == "cuda":
            first = torch.cuda.get_device_properties(0)
            found |= {
                "gpu": first.name,
                "gpu_memory_gib": round(first.total_memory / 2**30),
                "driver": _driver(),
                "cuda": torch.version.cuda,
                "nccl": _nccl(),
                "link": link(_nvidia_smi("topo", "-m")) if self.devices > 1 else None,
            }
        return found


def place(device: str | None) -> Place:
    """Choose all GPUs, or two ranks that share the only one; on a CPU two ranks.

    Raises
    ------
    ValueError
        If there is no GPU and none was given up on.
    """
    gpus = torch.cuda.device_count()
    if device == "cpu":
        return Place("cpu", 2, 2)
    if not gpus:
        raise ValueError(f"torch can use no GPU here; {TRY}")
    if gpus > 1 and not dist.is_nccl_available():
        raise ValueError("This torch has no NCCL, over which several GPUs talk; use one that has.")
    return Place("cuda", max(2, gpus), gpus)


def link(matrix: str) -> str:
    """Read what connects the first two GPUs from ``nvidia-smi topo -m``.

    Returns
    -------
    str
        As it is written there: ``NV18`` for 18 NVLinks together; ``PIX``, ``PXB``, ``PHB``,
        ``NODE`` and ``SYS`` for ways over PCIe, the longer the later; or ``unknown``.
    """
    for line in matrix.splitlines():
        name, *cells = line.split() or [""]
        if name == "GPU0" and cells[:1] == ["X"] and len(cells) > 1:
            return cells[1]
    return "unknown"


def _driver() -> str:
    lines = _nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader").split()
    return lines[0] if lines else "unknown"


def _nvidia_smi(*arguments: str) -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    asked = ["nvidia-smi", *arguments]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


def _nccl() -> str:
    return ".".join(map(str, torch.cuda.nccl.version())) if dist.is_nccl_available() else "none"
