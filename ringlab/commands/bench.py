"""``ringlab bench``: ranks against one process on the same problem, in CPU time and wall time.

Ring attention, forward and backward, and decode by split-K run on real ranks over gloo; one
process with as many threads runs SDPA.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from ringlab.bench.decode import DecodeProblem
from ringlab.bench.machine import facts
from ringlab.bench.prefill import PrefillProblem
from ringlab.bench.report import heading, introduction, line, write_csv, write_json
from ringlab.bench.rows import DEADLINE, Row, decode_rows, prefill_rows
from ringlab.calibration import predict_table, render
from ringlab.world import World

T = TypeVar("T")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
CASES = ("prefill", "decode")
# What --quick changes: about a minute on two cores.
LENGTHS = {"prefill": (8192, 16384), "decode": (8192, 32768, 131072, 262144)}
QUICK_LENGTHS = {"prefill": (4096,), "decode": (8192, 32768)}
DIMS, QUICK_DIMS = (64, 128), (64,)
REPEATS, QUICK_REPEATS = 5, 3


def _numbers(text: str) -> tuple[int, ...]:
    """Read ``8k,16384``: positive whole numbers, k for 1024."""
    try:
        found = tuple(
            int(part.removesuffix("k")) * (1024 if part.endswith("k") else 1)
            for part in text.lower().split(",")
        )
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise ArgumentTypeError(f"{text!r} is no list of positive numbers, such as 8k,16384")
    return found


def _positive(text: str) -> int:
    (number, *rest) = _numbers(text)
    if rest:
        raise ArgumentTypeError(f"{text!r} is more than one number")
    return number


def _heads(text: str) -> tuple[int, int]:
    """Read ``32/8``: query heads and the KV heads that they share."""
    query, _, kv = text.partition("/")
    heads, kv_heads = _positive(query), _positive(kv or query)
    if heads % kv_heads:
        raise ArgumentTypeError(f"{heads} query heads cannot share {kv_heads} KV heads")
    return heads, kv_heads


def _dtypes(text: str) -> tuple[torch.dtype, ...]:
    unknown = [name for name in text.split(",") if name not in DTYPES]
    if unknown:
        raise ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(DTYPES)}")
    return tuple(DTYPES[name] for name in text.split(","))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ringlab bench", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a minute: short, few rounds")
    parser.add_argument("--case", choices=CASES, help="only one of the two tables")
    parser.add_argument(
        "--predict",
        action="store_true",
        help="instead measure this machine, predict runs on it, and compare with their times",
    )
    parser.add_argument("--lengths", type=_numbers, metavar="8k,16k", help="tokens")
    parser.add_argument("--dims", type=_numbers, metavar="64,128", help="head dimensions")
    parser.add_argument("--heads", type=_positive, default=8, help="heads of prefill (8)")
    parser.add_argument(
        "--decode-heads", type=_heads, default=(32, 8), metavar="32/8", help="query/KV heads"
    )
    parser.add_argument("--dtype", type=_dtypes, default=tuple(DTYPES.values()),
                        metavar="float32,bfloat16")  # fmt: skip
    parser.add_argument("--repeats", type=_positive, help=f"rounds ({REPEATS})")
    parser.add_argument("--ranks", type=_positive, default=2, help="ranks (2)")
    parser.add_argument("--threads", type=_positive, default=1, help="threads of a rank (1)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the rows as CSV")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    return parser


def _prefill_problems(options: Namespace) -> Iterator[PrefillProblem]:
    for dtype in options.dtype:
        for length in options.lengths or _default(LENGTHS, QUICK_LENGTHS, options)["prefill"]:
            for dim in options.dims or _default(DIMS, QUICK_DIMS, options):
                for causal in (False, True):
                    yield PrefillProblem(length, options.heads, dim, dtype, causal)


def _decode_problems(options: Namespace) -> Iterator[DecodeProblem]:
    heads, kv_heads = options.decode_heads
    for dtype in options.dtype:
        for length in options.lengths or _default(LENGTHS, QUICK_LENGTHS, options)["decode"]:
            for dim in options.dims or (128,):
                yield DecodeProblem(length, heads, kv_heads, dim, dtype)


def _default(full: T, quick: T, options: Namespace) -> T:
    return quick if options.quick else full


def _rows(case: str, options: Namespace, ranks: World, alone: World) -> Iterator[Row]:
    rounds = options.repeats
    if case == "prefill":
        for problem in _prefill_problems(options):
            yield from prefill_rows(problem, ranks, alone, rounds)
    else:
        for token in _decode_problems(options):
            yield from decode_rows(token, ranks, alone, rounds)


def main(argv: Sequence[str]) -> int:
    """Measure, and print each row as soon as it is known.

    Parameters
    ----------
    argv : sequence of str

    Returns
    -------
    int
        0; a slow machine is no error.
    """
    options = _parser().parse_args(argv)
    if options.predict:
        print(render(predict_table()))
        return 0
    options.repeats = options.repeats or _default(REPEATS, QUICK_REPEATS, options)
    where = facts()
    print(introduction(where, options.ranks, options.threads, options.repeats))
    threads = options.ranks * options.threads
    rows: list[Row] = []
    with (
        World(options.ranks, backend="gloo", threads=options.threads, timeout=DEADLINE) as ranks,
        World(1, backend="gloo", threads=threads, timeout=DEADLINE) as alone,
    ):
        for case in CASES if options.case is None else (options.case,):
            heads = options.decode_heads if case == "decode" else (options.heads,)
            print(heading(case, "/".join(map(str, heads))), flush=True)
            for row in _rows(case, options, ranks, alone):
                rows.append(row)
                print(line(row), flush=True)
    if options.csv:
        write_csv(options.csv, where, rows)
    if options.json:
        write_json(options.json, where, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
