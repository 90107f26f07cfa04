"""Put faults into a copy of the library, one at a time, and see whether its tests notice.

    python -m tests.mutants [--floor NAME ...] [--jobs N] [--only WORDS] [--clean]

Every mutant must be killed: a test must fail by an assertion. Those that are marked as
surviving, with the reason, must survive.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.catalog import Floor, Mutant, floors
from tests.mutants.trial import ROOT, Tree, Verdict


def main() -> int:
    """Return 0 if each mutant ended as it should, 2 if the text of one is no longer there."""
    parser = ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--floor", action="append", choices=floors(), help="only these floors")
    parser.add_argument("--only", default="", help="only mutants with these words in `what`")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--clean", action="store_true", help="only the tests, with no fault")
    given = parser.parse_args()
    chosen = [floor for name, floor in floors().items() if not given.floor or name in given.floor]
    gone = [error for floor in chosen for each in floor.mutants if (error := _gone(each))]
    if gone:
        print("Mutants must follow the code.", *gone, sep="\n", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(given.jobs):
            trees.put(stack.enter_context(closing(Tree(Path(folder) / str(number)))))
        if given.clean:
            return max(_clean(floor, trees) for floor in chosen)
        pairs = [(f, m) for f in chosen for m in f.mutants if given.only in m.what]
        with ThreadPoolExecutor(given.jobs) as pool:
            verdicts = list(pool.map(lambda pair: _try(*pair, trees), pairs))
    print(dict(Counter(verdict.status for verdict in verdicts)), f"of {len(pairs)}")
    return int(any(_ended_otherwise(m, v) for (_, m), v in zip(pairs, verdicts, strict=True)))


def _gone(mutant: Mutant) -> str:
    """What is wrong with a mutant whose text is no longer there."""
    try:
        mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
    except LookupError as error:
        return f"  {error}"
    return ""


def _ended_otherwise(mutant: Mutant, verdict: Verdict) -> bool:
    """Whether a mutant ended in another way than it should."""
    return verdict.status != mutant.expected


def _try(floor: Floor, mutant: Mutant, trees: SimpleQueue[Tree]) -> Verdict:
    tree = trees.get()
    try:
        verdict = tree.judge(mutant, floor.tests)
    finally:
        trees.put(tree)
    mark = "WRONG " if _ended_otherwise(mutant, verdict) else ""
    print(f"{mark}{verdict.status:9} {verdict.seconds:5.1f} s  {floor.name}: {mutant.what}")
    if verdict.by:
        print(f"    {verdict.by.splitlines()[0][:160]}", flush=True)
    return verdict


def _clean(floor: Floor, trees: SimpleQueue[Tree]) -> int:
    tree = trees.get()
    verdict = tree.run(floor.tests)
    trees.put(tree)
    print(f"{floor.name}: {verdict.status} in {verdict.seconds:.1f} s {verdict.by}", flush=True)
    return int(verdict.status != "survived")


if __name__ == "__main__":
    sys.exit(main())
