"""What a message costs in the virtual world: a ring of ranks with nothing but hops.

python -m benchmarks.messages                 # 1 to 1,024 ranks; results/messages.json
python -m benchmarks.messages --sizes 8 --rounds 1 --json FILE
python -m benchmarks.messages --print         # only print what is stored

A hop is one send and one receive of a rank, their waits, and all that is recorded and checked of
them. Its time is that of a whole run, its start included, divided by ranks times hops. Beside it
stands the same hop on torch's "fake" process group, which sends and records nothing: what the calls
of ``torch.distributed`` cost before a world does anything. A rank computes on one thread.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.testing._internal.distributed.fake_pg import FakeStore

from benchmarks import program
from benchmarks.stored import Data
from ringlab.bench.machine import facts, measured_on
from ringlab.bench.readings import Reading, Stopwatch, interleave, median
from ringlab.world import World

SIZES = (1, 2, 8, 64, 256, 1024)
HOPS, LEAST = 8192, 20
"""Hops of all ranks together, and those that each makes at least: starting must count little."""

OURS, TORCHS = "ours", "torch's"

Program = Callable[[Tensor, int], None]


def batched(block: Tensor, hops: int) -> None:
    """Pass blocks on by ``batch_isend_irecv``."""
    rank, size = dist.get_rank(), dist.get_world_size()
    arriving = torch.empty_like(block)
    for _ in range(hops):
        ops = [
            dist.P2POp(dist.isend, block, group_peer=(rank + 1) % size),
            dist.P2POp(dist.irecv, arriving, group_peer=(rank - 1) % size),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        block, arriving = arriving, block


def one_by_one(block: Tensor, hops: int) -> None:
    """Pass blocks on by ``isend`` and ``irecv``; for an even number of ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    arriving = torch.empty_like(block)
    for _ in range(hops):
        if rank % 2:
            works = [dist.irecv(arriving, rank - 1), dist.isend(block, (rank + 1) % size)]
        else:
            works = [dist.isend(block, rank + 1), dist.irecv(arriving, (rank - 1) % size)]
        for work in works:
            assert work is not None, "a rank is a member of its own group"
            work.wait()
        block, arriving = arriving, block


PROGRAMS: dict[str, Program] = {"batched": batched, "one by one": one_by_one}


def hop(program: Program, size: int, hops: int) -> Reading:
    """Run `program` on `size` virtual ranks; the reading is of one hop."""
    world, block = World(size), torch.empty(2, 1, 8, 64, 128, device="meta")
    with Stopwatch() as watch:
        world.run(program, block, hops)
    return _each(watch.reading, size * hops)


def hop_of_torch(program: Program, size: int, hops: int) -> Reading:
    """Do the same as one rank of torch's process group that sends nothing."""
    dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())
    try:
        block = torch.empty(2, 1, 8, 64, 128)
        program(block, 1)
        with Stopwatch() as watch:
            program(block, hops)
    finally:
        dist.destroy_process_group()
    return _each(watch.reading, hops)


def _each(reading: Reading, count: int) -> Reading:
    return Reading(reading.wall / count, reading.cpu / count)


def main() -> int:
    """Run it."""
    return program.run("messages", __doc__, measured, tables, _add_options)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)


def measured(chosen: argparse.Namespace) -> Data:
    """Measure every number of ranks; both programs, here and in torch, take turns."""
    torch.set_num_threads(1)
    machine = {**facts(), "rounds": chosen.rounds}
    rows = []
    for size in chosen.sizes:
        hops = max(LEAST, HOPS // size)
        contestants = {
            name: lambda program=program, size=size, hops=hops: {
                OURS: hop(program, size, hops),
                TORCHS: hop_of_torch(program, size, HOPS),
            }
            for name, program in PROGRAMS.items()
            if name == "batched" or size % 2 == 0
        }
        for name, taken in interleave(contestants, chosen.rounds).items():
            ours, torchs = (median([one[whose] for one in taken]) for whose in (OURS, TORCHS))
            rows.append(
                {"ranks": size, "program": name, "cpu_s": ours.cpu, "wall_s": ours.wall,
                 "torch_cpu_s": torchs.cpu}
            )  # fmt: skip
    return {"machine": machine, "rows": rows}


def tables(data: Data) -> str:
    """Write what was measured as Markdown."""
    lines = [
        "| ranks | a hop is | CPU µs (wall µs) | in torch's own calls |",
        "| --- | --- | --- | --- |",
    ]
    for row in data["rows"]:
        ours = f"{row['cpu_s'] * 1e6:.0f} ({row['wall_s'] * 1e6:.0f})"
        torchs = f"{row['torch_cpu_s'] * 1e6:.0f}"
        lines.append(f"| {row['ranks']:,} | {row['program']} | {ours} | {torchs} |")
    machine = data["machine"]
    where = (
        f"Meta tensors, one thread a rank; medians of {machine['rounds']} rounds in turns "
        f"{measured_on(machine)}, Python {machine['python']}, {machine['date'][:10]}."
    )
    return "\n".join([*lines, "", where])


if __name__ == "__main__":
    sys.exit(main())
