"""``ringlab bench``: ranks against one process on the same problem, in CPU time and wall time.

Ring attention, forward and backward, and decode by split-K run on real ranks over gloo; one
process with as many threads runs SDPA.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from ringlab.bench import accuracy_report
from ringlab.bench.accuracy import SIZES, AccuracyProblem, ErrorRow, error_rows, policies
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
ERROR_LENGTH, QUICK_ERROR_LENGTH, QUICK_SIZES = 1021, 251, (1, 2, 8, 32)
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
    parser.add_argument(
        "--errors",
        action="store_true",
        help="instead measure errors against float64 on 1 to 32 virtual ranks; --lengths, --json",
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


def _errors(options: Namespace) -> int:
    """Measure the errors of every policy, with a causal mask and without."""
    default = _default(ERROR_LENGTH, QUICK_ERROR_LENGTH, options)
    sizes = _default(SIZES, QUICK_SIZES, options)
    problem = AccuracyProblem((options.lengths or (default,))[0])
    print(accuracy_report.introduction(problem), flush=True)
    rows: list[ErrorRow] = []
    for causal in (False, True):
        for row in error_rows(replace(problem, causal=causal), policies(), sizes):
            rows.append(row)
            if len(rows) % 4 == 0:
                print(accuracy_report.line(rows[-4:]), flush=True)
    if options.json:
        accuracy_report.write_errors(options.json, facts(), problem, rows)
    broken = [text for policy in policies() for text in accuracy_report.violations(rows, policy)]
    print(*(broken or ["All within their limits, and flat."]), sep="\n")
    return 1 if broken else 0


def main(argv: Sequence[str]) -> int:
    """Measure, and print each row as soon as it is known.

    Parameters
    ----------
    argv : sequence of str

    Returns
    -------
    int
        0; a slow machine is no error. With ``--errors`` 1 if an error is above its limit.
    """
    options = _parser().parse_args(argv)
    if options.predict:
        print(render(predict_table()))
        return 0
    if options.errors:
        return _errors(options)
    options.repeats = options.repeats or _default(REPEATS, QUICK_REPEATS, options)
    how = {"ranks": options.ranks, "threads": options.threads, "rounds": options.repeats}
    where = facts() | how
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
