"""Decode of one token by split-K on ranks beside one process that has the whole KV cache.

python -m benchmarks.decode                   # 8k to 256k tokens on 2 and 4 ranks; decode.json
python -m benchmarks.decode --rounds 1 --lengths 8192 --json FILE
python -m benchmarks.decode --print           # only print what is stored

32 query heads on 8 KV heads, D = 128. The one process has as many threads as there are ranks, up to
the number of cores.
"""

from __future__ import annotations

import argparse
import sys

import torch

from benchmarks import program
from benchmarks.stored import Data
from ringlab import World, host
from ringlab.bench.decode import DecodeProblem
from ringlab.bench.machine import facts, measured_on
from ringlab.bench.rows import DEADLINE, decode_rows

WORLD_SIZES = (2, 4)
LENGTHS = (8192, 32768, 131072, 262144)


def main() -> int:
    """Run it."""
    return program.run("decode", __doc__, measured, tables, _add_options)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)


def measured(chosen: argparse.Namespace) -> Data:
    """Measure every length on every number of ranks, in bfloat16."""
    machine = {**facts(), "rounds": chosen.rounds}
    rows = []
    for size in WORLD_SIZES:
        threads = min(size, host.cores())
        with (
            World(size, backend="gloo", threads=1, timeout=DEADLINE) as ranks,
            World(1, backend="gloo", threads=threads, timeout=DEADLINE) as alone,
        ):
            for length in chosen.lengths:
                problem = DecodeProblem(length, 32, 8, 128, torch.bfloat16)
                rows += [
                    {"ranks": size, "threads_alone": threads, **row.flat()}
                    for row in decode_rows(problem, ranks, alone, chosen.rounds)
                ]
    return {"machine": machine, "rows": rows}


def tables(data: Data) -> str:
    """Write what was measured as Markdown."""
    lines = [
        "| tokens | ranks | ringlab, CPU ms (wall ms) | one process | ratio of CPU, of wall |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in data["rows"]:
        ours, alone = (
            f"{row[f'{who}cpu_s'] * 1e3:.2f} ({row[f'{who}wall_s'] * 1e3:.2f})"
            for who in ("", "baseline_")
        )
        ratios = f"{row['cpu_ratio']:.2f}, {row['wall_ratio']:.2f}"
        lines.append(f"| {row['length']:,} | {row['ranks']} | {ours} | {alone} | {ratios} |")
    machine = data["machine"]
    where = (
        f"One token, 32 query heads on 8 KV heads, D = 128, {data['rows'][0]['dtype']}; medians of "
        f"{machine['rounds']} rounds in turns {measured_on(machine)}, {machine['date'][:10]}."
    )
    return "\n".join([*lines, "", where])


if __name__ == "__main__":
    sys.exit(main())
