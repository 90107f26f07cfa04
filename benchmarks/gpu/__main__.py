"""Measure ringlab on the GPUs of this machine, print the tables and store the results.

python -m benchmarks.gpu                          # all GPUs, some minutes; results/gpu.json
python -m benchmarks.gpu --parts ring decode
python -m benchmarks.gpu --device cpu --tiny      # tries the program where there is no GPU
python -m benchmarks.gpu --print                  # only print what is stored
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gpu import blockwise, decode, kernels, overlap, ring
from benchmarks.gpu.place import Place, place
from benchmarks.gpu.scale import TINY, WHOLE, Scale
from benchmarks.gpu.table import tables

STORED = Path(__file__).parents[1] / "results" / "gpu.json"
ALONE = {"kernels": kernels.run, "blockwise": blockwise.run}
PARTS = (*ALONE, "ring", "overlap", "decode")


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--device", choices=("cuda", "cpu"), help="the GPUs, unless said")
    parser.add_argument("--tiny", action="store_true", help="tiny problems, which tell no speed")
    parser.add_argument("--json", type=Path, default=STORED)
    parser.add_argument("--print", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    if not chosen.print:
        try:
            where = place(chosen.device)
        except ValueError as error:
            parser.exit(2, f"{error}\n")
        data = measured(where, TINY if chosen.tiny else WHOLE, chosen.parts)
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if not chosen.json.exists():
        parser.exit(2, f"{chosen.json.name} is not there: nothing has been measured yet.\n")
    print(tables(json.loads(chosen.json.read_text("utf-8"))))
    return 0


def measured(where: Place, scale: Scale, parts: Sequence[str]) -> dict[str, Any]:
    """Measure the parts, one after the other."""
    found: dict[str, Any] = {
        name: run(where, scale) for name, run in ALONE.items() if name in parts
    }
    left_out = []
    with where.world() as world:
        if "ring" in parts:
            found["ring"] = ring.run(world, where.device, where.devices, scale)
        if "overlap" in parts and not where.shared:
            found["overlap"] = overlap.run(world, where.device, scale)
        if "decode" in parts:
            found["decode"] = decode.run(world, where.device, scale)
    if where.shared:
        left_out.append(
            "overlap, and what NCCL does: two ranks share the only GPU and send through the memory "
            "of the host, so ring and decode show that they run, not how fast several GPUs are."
        )
    return {
        "machine": where.facts(), "scale": asdict(scale), "parts": found, "left_out": left_out,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
