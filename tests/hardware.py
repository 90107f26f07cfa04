"""What this machine has for tests, and what each marker needs of it. Nothing else may skip."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ringlab.meter import loopback_bytes

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass(frozen=True)
class Hardware:
    """What tests may need.

    Parameters
    ----------
    gpus : int
        CUDA devices that torch can use.
    nccl : bool
        Whether torch can talk between them.
    gloo : bool
        Whether torch can talk between processes on CPU.
    browser : str or None
        Path of a Chromium.
    """

    gpus: int
    nccl: bool
    gloo: bool
    browser: str | None

    def __str__(self) -> str:
        """Name it in one line."""
        browser = self.browser or "no browser"
        return f"{self.gpus} GPUs, {'gloo' if self.gloo else 'no gloo'}, {browser}"


@lru_cache(maxsize=1)
def hardware() -> Hardware:
    """Look at this machine, once."""
    import torch.distributed

    distributed = torch.distributed.is_available()
    return Hardware(
        gpus=torch.cuda.device_count() if torch.cuda.is_available() else 0,
        nccl=distributed and torch.distributed.is_nccl_available(),
        gloo=distributed and torch.distributed.is_gloo_available(),
        browser=next(filter(None, map(shutil.which, BROWSERS)), None),
    )


def listed_gpus() -> int:
    """GPUs that the driver lists and nobody hides: asked of the driver, not of torch."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return 0
    if shutil.which("nvidia-smi") is None:
        return 0
    lines = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True).stdout
    return sum(line.startswith("GPU ") for line in lines.splitlines())


def _lacks_gloo(machine: Hardware) -> str | None:
    return None if machine.gloo else "needs a torch with gloo"


def _lacks_gpus(machine: Hardware, count: int = 1) -> str | None:
    if machine.gpus >= count:
        return None
    return f"needs {count} {'GPU' if count == 1 else 'GPUs'}, torch can use {machine.gpus}"


def _lacks_nccl(machine: Hardware, count: int = 2) -> str | None:
    return _lacks_gpus(machine, count) or (None if machine.nccl else "needs a torch with NCCL")


def _lacks_browser(machine: Hardware) -> str | None:
    return None if machine.browser else "needs Chromium"


def _lacks_counter(machine: Hardware) -> str | None:
    return None if loopback_bytes() is not None else "needs a system that counts loopback bytes"


def _lacks_landlock(machine: Hardware) -> str | None:
    from ringlab.grade.isolation import landlock  # imports all of the library

    return None if landlock.version() else "needs Linux with Landlock"


def _lacks_proc(machine: Hardware) -> str | None:
    return None if Path("/proc/self").exists() else "needs /proc"


# What a marker needs: given the machine and the marker's arguments, why a test cannot run here.
NEEDS: dict[str, Callable[..., str | None]] = {
    "processes": _lacks_gloo,
    "cuda": _lacks_gpus,
    "nccl": _lacks_nccl,
    "browser": _lacks_browser,
    "loopback": _lacks_counter,
    "landlock": _lacks_landlock,
    "procfs": _lacks_proc,
}

MARKERS = {
    "aside": "runs beside the others in make test-library; set by folder, see conftest.py",
    "processes": "starts real ranks on gloo",
    "cuda(count=1)": "needs that many CUDA devices",
    "nccl(count=2)": "needs that many CUDA devices, and ranks on them over NCCL",
    "browser": "drives JupyterLab in a headless Chromium",
    "loopback": "reads the system's counter of loopback bytes (Linux)",
    "landlock": "shuts a process in by Landlock (Linux 5.13 and newer)",
    "procfs": "reads processes from /proc (Linux)",
    "notebook": "runs a notebook",
    "slow": "second tier: left out unless --full is given",
}
