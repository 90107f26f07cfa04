"""A benchmark's table as text, CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ringlab.bench.losses import LOSSES
from ringlab.bench.readings import WAITING
from ringlab.bench.rows import Row

Facts = Mapping[str, str | int | float]


def introduction(facts: Facts, ranks: int, threads: int, rounds: int) -> str:
    """Say where and how was measured, and what the columns mean."""
    cores, load = facts["cores"], facts["load"]
    lines = [
        f"ringlab {facts['ringlab']} bench, {facts['date']}",
        f"{facts['cpu']} ({facts['vectors']}), {cores} {'core' if cores == 1 else 'cores'}, "
        f"{facts['memory_gib']} GiB, load average {load}; torch {facts['torch']}, Python "
        f"{facts['python']}, {facts['system']}",
        "",
        f"{_count(ranks, 'rank')} of {_count(threads, 'thread')} over gloo and one process of "
        f"{_count(ranks * threads, 'thread')} take turns; medians of {_count(rounds, 'round')}.",
        "ratio: CPU time of the process / CPU time of the ranks (user and system, all threads); "
        "1 is parity,",
        "       more is faster; then the worst and the best round, and the ratio of wall time. Of "
        "the ways to call SDPA",
        "       (baseline) the process takes the fastest on this machine.",
    ]
    if ranks * threads > int(cores):
        lines.append(
            f"NOTE: {ranks} x {threads} threads do not fit {cores} cores: ranks wait for one "
            "another's turns. Pass --ranks and --threads whose product fits."
        )
    return "\n".join(lines)


PREFILL = (
    f"{'tokens':>8} {'D':>4} {'dtype':<9}{'mask':<7}{'phase':<9}{'ringlab s':>10}{'SDPA s':>9}"
    f"{'ratio':>7}{'worst':>7}{'best':>6}{'wall':>6}  "
    + " ".join(f"{name:>9}" for name in (*LOSSES.values(), WAITING))
    + f"{'least':>7}{'bound':>7}"
    + "  baseline"
)
DECODE = (
    f"{'tokens':>8} {'D':>4} {'dtype':<9}{'heads':<8}{'ringlab ms':>11}{'SDPA ms':>9}"
    f"{'ratio':>7}{'worst':>7}{'best':>6}{'wall':>6}  baseline"
)


def heading(case: str, heads: str) -> str:
    """Give the title and the names of the columns of a table."""
    if case == "prefill":
        return (
            f"\nPrefill: ring attention, {heads} heads, B = 1; causal is zig-zag. From tails on: "
            "what the ranks spend\nbeyond SDPA, in % of its CPU time, the least of the rounds; "
            f"{WAITING}, in % of its wall time, takes no CPU.\nleast: the ratio that they add up "
            f"to; bound: the same without transport.\n{PREFILL}"
        )
    return f"\nDecode: a token by split-K, {heads} query/KV heads, B = 1\n{DECODE}"


def line(row: Row) -> str:
    """Format a row under the heading of its case."""
    result = row.result
    ratios = f"{result.ratio:>7.3f}{result.low:>7.2f}{result.high:>6.2f}{result.wall_ratio:>6.2f}  "
    start = f"{row.length:>8} {row.dim:>4} {row.dtype:<9}"
    if row.case == "decode":
        heads = f"{row.heads}/{row.kv_heads}"
        times = f"{1e3 * result.ours.cpu:>11.2f}{1e3 * result.baseline.cpu:>9.2f}"
        return f"{start}{heads:<8}{times}{ratios}{row.baseline}"
    shares = " ".join(f"{share:>9.1f}" for share in row.losses.values())
    shares += f"{row.least_ratio:>7.3f}{row.bound:>7.3f}"
    times = f"{result.ours.cpu:>10.3f}{result.baseline.cpu:>9.3f}"
    return f"{start}{row.mask:<7}{row.phase:<9}{times}{ratios}{shares}  {row.baseline}"


def write_csv(path: Path, facts: Facts, rows: Sequence[Row]) -> None:
    """Write a line for each row; the facts of the machine stand in every line."""
    table = [{**row.flat(), **facts} for row in rows]
    names = list(dict.fromkeys(name for entry in table for name in entry))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(table)


def write_json(path: Path, facts: Facts, rows: Sequence[Row]) -> None:
    """Write ``{"machine": {...}, "rows": [...]}``."""
    content = {"machine": dict(facts), "rows": [row.flat() for row in rows]}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
