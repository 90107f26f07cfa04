"""Errors against the number of ranks as text and as JSON, and what they are held to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from ringlab.bench.accuracy import (
    FLATNESS,
    FLOAT64_LIMIT,
    AccuracyProblem,
    ErrorRow,
    Policy,
    Results,
)

HEADING = (
    f"{'dtype':<9}{'partials':<9}{'kernel':<18}{'mask':<7}{'ranks':>6}  "
    + " ".join(f"{name:>7}" for name in Results._fields)
    + f"  {'largest':>8}"
)


def introduction(problem: AccuracyProblem) -> str:
    """Say what the numbers of the table are."""
    return (
        f"Ring attention on virtual ranks, {problem.seeds} sequences of {problem.length} tokens, "
        f"{problem.heads}/{problem.kv_heads} heads, D = {problem.dim}; causal is zig-zag.\n"
        "Rms error against float64, over that of SDPA on one device in the same dtype; for "
        "float64 the error itself.\n"
        "Largest: the same of the largest error, of the worst of the four.\n\n" + HEADING
    )


def line(four: Sequence[ErrorRow]) -> str:
    """Format the four results of a policy on some ranks."""
    row = four[0]
    exact = row.dtype == "float64"
    figures = [f"{x.rms:>7.1e}" if exact else f"{x.rms_ratio:>7.3f}" for x in four]
    largest = max(x.largest if exact else x.largest_ratio for x in four)
    return (
        f"{row.dtype:<9}{row.partials:<9}{row.kernel:<18}{row.mask:<7}{row.ranks:>6}  "
        + " ".join(figures)
        + (f"  {largest:>8.1e}" if exact else f"  {largest:>8.3f}")
    )


def violations(rows: Sequence[ErrorRow], policy: Policy) -> list[str]:
    """Name every error of a policy that is above what it is held to.

    Parameters
    ----------
    rows : sequence of ErrorRow
        Of any policies.
    policy : Policy

    Returns
    -------
    list of str
        Empty if each ratio is within the policy's limit, and with the most ranks at most
        `FLATNESS` times what it is with two; for float64 each error within `FLOAT64_LIMIT`.
    """
    found = []
    mine = [row for row in rows if (row.dtype, row.kernel) == (policy.dtype, policy.kernel)]
    for row in mine:
        where = f"{policy.name}: {row.mask}, {row.result} on {row.ranks} ranks"
        if policy.limit is None:
            if row.rms > FLOAT64_LIMIT:
                found.append(f"{where} has an error of {row.rms:.2g}")
            continue
        if row.rms_ratio > policy.limit:
            found.append(f"{where} has {row.rms_ratio:.3f} times the error of one device")
        few = _of_two_ranks(mine, row)
        if row.ranks == max(x.ranks for x in mine) and row.rms_ratio > FLATNESS * few:
            found.append(f"{where} has {row.rms_ratio / few:.3f} times the error of two ranks")
    return found


def _of_two_ranks(rows: Sequence[ErrorRow], like: ErrorRow) -> float:
    wanted = (2, like.mask, like.result)
    return next(x.rms_ratio for x in rows if (x.ranks, x.mask, x.result) == wanted)


def write_errors(
    path: Path,
    facts: Mapping[str, str | int | float],
    problem: AccuracyProblem,
    rows: Sequence[ErrorRow],
) -> None:
    """Write ``{"machine": {...}, "problem": {...}, "rows": [...]}``."""
    shape = {name: value for name, value in asdict(problem).items() if name != "causal"}
    lines = ",\n".join("    " + json.dumps(row.flat()) for row in rows)
    head = json.dumps({"machine": dict(facts), "problem": shape}, indent=2).removesuffix("\n}")
    path.write_text(f'{head},\n  "rows": [\n{lines}\n  ]\n}}\n', encoding="utf-8")


def read_errors(path: Path) -> tuple[dict[str, str], AccuracyProblem, list[ErrorRow]]:
    """Read what `write_errors` wrote: the machine, the problem and the rows."""
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = [ErrorRow(**row) for row in content["rows"]]
    return content["machine"], AccuracyProblem(**content["problem"]), rows
