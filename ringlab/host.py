"""What this machine has: cores, memory, GPUs and the links between them. No judgement."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLAIN_LINKS = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "the CPU's PCIe root",
    "NODE": "PCIe roots of one CPU socket",
    "SYS": "the link between CPU sockets",
}


@dataclass(frozen=True)
class Gpu:
    """A CUDA device.

    Parameters
    ----------
    index : int
        Its number as torch counts.
    name : str
        For example ``"NVIDIA H100 80GB HBM3"``.
    memory : int
        Bytes in all.
    capability : str
        Compute capability, for example ``"9.0"``.
    """

    index: int
    name: str
    memory: int
    capability: str


def cores() -> int:
    """Cores that this process may use, by affinity and by the container's quota."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    usable = usable or os.cpu_count() or 1
    quota, _, period = _read(_CGROUP / "cpu.max").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        usable = min(usable, max(1, int(quota) // int(period)))
    return usable


def memory() -> int | None:
    """Bytes of main memory that this process may use; None where the system does not tell."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    limit = _read(_CGROUP / "memory.max").strip()
    return min(total, int(limit)) if limit.isdigit() else total


def shared_memory() -> int | None:
    """Free bytes in /dev/shm; None on systems without it."""
    try:
        return shutil.disk_usage("/dev/shm").free
    except OSError:
        return None


def gpus() -> list[Gpu]:
    """CUDA devices that torch can use, in torch's order."""
    import torch

    if not torch.cuda.is_available():
        return []
    found = []
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        capability = f"{card.major}.{card.minor}"
        found.append(Gpu(index, card.name, card.total_memory, capability))
    return found


def driver_gpus() -> list[str]:
    """GPUs that the driver lists, whether or not torch can use them."""
    lines = _nvidia_smi("--list-gpus").splitlines()
    return [line.split("(")[0].strip() for line in lines if line.startswith("GPU ")]


def hidden_gpus() -> bool:
    """Whether CUDA_VISIBLE_DEVICES hides every GPU on purpose."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1")


def links() -> dict[tuple[int, int], str]:
    """How each pair of GPUs is linked, in words, numbered as the driver numbers them."""
    return read_topology(_nvidia_smi("topo", "-m"))


def read_topology(text: str) -> dict[tuple[int, int], str]:
    """Read the matrix that ``nvidia-smi topo -m`` prints.

    Parameters
    ----------
    text : str
        Its output: a row for each GPU, whose first columns are the GPUs.

    Returns
    -------
    dict
        For each pair ``(a, b)`` with a < b what the path between them is.
    """
    rows = [_COLOUR.sub("", line).split() for line in text.splitlines()]
    cards = [row for row in rows if len(row) > 1 and re.fullmatch(r"GPU\d+", row[0])]
    cards = [row for row in cards if "X" in row]
    return {
        (a, b): _in_words(cards[a][1 + b])
        for a in range(len(cards))
        for b in range(a + 1, len(cards))
    }


def _in_words(link: str) -> str:
    bonded = re.fullmatch(r"NV(\d+)", link)
    return f"NVLink (x{bonded[1]})" if bonded else _PLAIN_LINKS.get(link, link)


def _nvidia_smi(*args: str) -> str:
    try:
        result = subprocess.run(
            ["nvidia-smi", *args], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout if result.returncode == 0 else ""


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
