"""Which machine and which versions a measurement comes from."""

from __future__ import annotations

import os
import platform
import re
from datetime import datetime, timezone
from pathlib import Path

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


def processor() -> str:
    """Name the processor, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or "unknown processor"
