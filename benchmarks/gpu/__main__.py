"""Measure ringlab on the GPUs of this machine, print the tables and store the results.

python -m benchmarks.gpu                          # all GPUs, some minutes; results/gpu.json
python -m benchmarks.gpu --parts ring decode      # prints only; --json FILE stores it
python -m benchmarks.gpu --device cpu --tiny      # tries the program where there is no GPU
python -m benchmarks.gpu --print                  # only print what is stored
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks import stored
from benchmarks.gpu import blockwise, decode, kernels, overlap, ring
from benchmarks.gpu.place import TRY, Place, place
from benchmarks.gpu.scale import TINY, WHOLE, Scale
from benchmarks.gpu.table import tables
from benchmarks.program import parser_of

ALONE = {"kernels": kernels.run, "blockwise": blockwise.run}
PARTS = (*ALONE, "ring", "overlap", "decode")
SHARED = (
    "overlap, and what NCCL does: two ranks share the only GPU and send through the memory of the "
    "host, so ring and decode show that they run, not how fast several GPUs are."
)


def main() -> int:
    """Run it."""
    parser = parser_of("gpu", __doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--device", choices=("cuda", "cpu"), help="the GPUs, unless said")
    parser.add_argument("--tiny", action="store_true", help="tiny problems, which tell no speed")
    chosen = parser.parse_args()
    path = chosen.json or stored.path_of("gpu")
    if chosen.print:
        if not path.exists():
            parser.exit(2, f"{path.name} is not there: nothing has been measured yet.\n")
        print(tables(stored.read(path)))
        return 0
    if chosen.device == "cpu" and not chosen.tiny:
        parser.exit(2, f"On a CPU the whole problems would take hours; {TRY}.\n")
    try:
        where = place(chosen.device)
    except ValueError as error:
        parser.exit(2, f"{error}\n")
    data = measured(where, TINY if chosen.tiny else WHOLE, chosen.parts)
    print(tables(data))
    if chosen.json or (set(chosen.parts) == set(PARTS) and not chosen.tiny):
        stored.write(data, path)
    else:
        print("\nNot stored: only a whole run is, or what --json FILE asks for.")
    return 0


def measured(where: Place, scale: Scale, parts: Sequence[str]) -> stored.Data:
    """Measure the parts, one after the other."""
    found: dict[str, Any] = {
        name: run(where, scale) for name, run in ALONE.items() if name in parts
    }
    among_ranks = [name for name in PARTS if name in parts and name not in ALONE]
    if among_ranks:
        with where.world() as world:
            if "ring" in among_ranks:
                found["ring"] = ring.run(world, where.device, where.devices, scale)
            if "overlap" in among_ranks and not where.shared:
                found["overlap"] = overlap.run(world, where.device, scale)
            if "decode" in among_ranks:
                found["decode"] = decode.run(world, where.device, scale)
    left_out = [SHARED] if among_ranks and where.shared else []
    return {
        "machine": where.facts(), "scale": asdict(scale), "parts": found, "left_out": left_out,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
