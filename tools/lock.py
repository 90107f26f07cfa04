"""Write requirements.lock: exact versions for every Python and system ringlab runs on.

Run it as ``make lock`` after changing a dependency in pyproject.toml.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
TORCH = "2.13.0"
OLDEST_PYTHON = "3.10"
# A CUDA build of torch names these itself; a CPU build and macOS do without them.
BROUGHT_BY_TORCH = re.compile(r"(nvidia|cuda|triton)\b")

HEADER = f"""\
# Exact versions for Python 3.10 to 3.13 on Linux, macOS and Windows.
# Made by `make lock` from pyproject.toml; do not edit.
# torch stands here without its CUDA libraries and Triton: each build of torch {TORCH}
# asks for the ones it was made with, and a CPU build for none.
"""


def resolve(upgrade: bool) -> list[str]:
    """Ask uv for one version of everything, with markers where systems differ."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml"]
    command += ["--universal", "--python-version", OLDEST_PYTHON, "--extra", "lab"]
    command += ["--extra", "test", "--no-header", "--no-annotate", "--quiet"]
    command += ["--constraints", "-", "--output-file", LOCK.name]
    command += ["--upgrade"] if upgrade else []
    result = subprocess.run(
        command, cwd=ROOT, input=f"torch=={TORCH}\n", text=True, capture_output=True, check=False
    )
    if result.returncode:
        raise SystemExit(f"uv could not resolve the dependencies:\n{result.stderr.strip()}")
    return [line for line in LOCK.read_text().splitlines() if "==" in line]


def main() -> None:
    """Resolve and write the lock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest versions of everything"
    )
    pins = resolve(parser.parse_args().upgrade)
    kept = [pin for pin in pins if not BROUGHT_BY_TORCH.match(pin)]
    LOCK.write_text(HEADER + "\n".join(kept) + "\n")
    print(f"{LOCK.name}: {len(kept)} pins, torch {TORCH}")


if __name__ == "__main__":
    main()
