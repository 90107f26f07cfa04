"""Compare ringlab with the other libraries, print the tables and store the results.

python -m benchmarks.peers                    # everything, some minutes; writes peers.json
python -m benchmarks.peers --rounds 2 --length 1024 --json FILE
python -m benchmarks.peers --print            # only print what is stored

`pip install -e ".[benchmarks]"` in this repository brings the other libraries.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import replace

from benchmarks import program
from benchmarks.peers import table
from benchmarks.peers.abilities import examine
from benchmarks.peers.libraries import FACTORIES
from benchmarks.peers.measure import compare
from benchmarks.peers.problem import Problem
from benchmarks.peers.ranks import Ranks
from benchmarks.stored import Data
from ringlab.bench.machine import facts

PROBLEMS = (
    Problem(4096, 8, 8, 64, "float32", causal=False),
    Problem(4096, 8, 8, 64, "float32", causal=True),
    Problem(4096, 8, 2, 128, "bfloat16", causal=True),
)
SECONDS = 120.0
"""How long a rank may take for its first call and for any other."""


def main() -> int:
    """Run it."""
    return program.run("peers", __doc__, measured, table.tables, _add_options)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=int, help="tokens, instead of each problem's own")


def measured(chosen: argparse.Namespace) -> Data:
    """Measure everything; a library that fails costs its own rows only."""
    machine = {**facts(), "ranks": 2, "threads": 1, "rounds": chosen.rounds}
    with ExitStack() as stack:
        contestants = [stack.enter_context(Ranks(factory, SECONDS)) for factory in FACTORIES]
        abilities = examine(contestants)
        timed = [ranks for ranks in contestants if ranks.peer.timed]
        rows = []
        for problem in PROBLEMS:
            asked = replace(problem, length=chosen.length or problem.length)
            rows += [row.flat() for row in compare(timed, asked, chosen.rounds)]
    libraries = [
        {
            "name": peer.name,
            "package": peer.package,
            "version": peer.version,
            "how": peer.how,
            "why": peer.why,
        }
        for peer in (factory() for factory in FACTORIES)
    ]
    return {"machine": machine, "libraries": libraries, "rows": rows, "abilities": abilities}


if __name__ == "__main__":
    sys.exit(main())
