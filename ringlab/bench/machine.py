"""Which machine and which versions a measurement comes from."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from ringlab import __version__, host


def facts() -> dict[str, str | int | float]:
    """Tell the date, the processor, its load and the versions."""
    memory = host.memory()
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": processor(),
        "cores": host.cores(),
        "memory_gib": round(memory / 2**30) if memory else 0,
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else -1.0,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "ringlab": __version__,
    }


def measured_on(machine: Mapping[str, Any]) -> str:
    """Tell what was measured on, from `facts`, for the middle of a sentence."""
    return (
        f"on {machine['cores']} shared cores of an {machine['cpu']} ({machine['vectors']}) with a "
        f"load average of {machine['load']} before the start, torch {machine['torch']}"
    )


def processor() -> str:
    """Name the processor, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or "unknown processor"
