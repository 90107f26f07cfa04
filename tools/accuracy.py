"""Write what docs/accuracy.md shows: its tables and its picture.

    ringlab bench --errors --json benchmarks/results/errors.json      # measures, ten minutes
    python -m tools.accuracy                                          # writes the page

A test runs this and finds nothing to change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ringlab.bench.accuracy import ErrorRow, Policy, Results, policies
from ringlab.bench.accuracy_report import read_errors
from ringlab.draw import Picture, draw_errors
from tools.blocks import with_block

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "errors.json"
PAGE = ROOT / "docs" / "accuracy.md"
PICTURE = ROOT / "docs" / "accuracy.png"
MASKS = ("full", "causal")


def of_policy(rows: Iterable[ErrorRow], policy: Policy) -> list[ErrorRow]:
    """The rows that belong to a policy."""
    return [row for row in rows if (row.dtype, row.kernel) == (policy.dtype, policy.kernel)]


def ratios_table(rows: Sequence[ErrorRow]) -> str:
    """The largest ratio of the four results, for each policy and number of ranks."""
    sizes = sorted({row.ranks for row in rows})
    lines = [
        "| inputs | partial results | kernel | mask | "
        + " | ".join(f"W = {size}" for size in sizes) + " | allowed |",
        "| --- | --- | --- | --- |" + " --- |" * (len(sizes) + 1),
    ]  # fmt: skip
    for policy in policies():
        mine = of_policy(rows, policy)
        exact = policy.limit is None
        for mask in MASKS:
            found = [
                max(
                    row.rms if exact else row.rms_ratio
                    for row in mine
                    if (row.mask, row.ranks) == (mask, size)
                )
                for size in sizes
            ]
            cells = [f"{x:.1e}" if exact else f"{x:.2f}" for x in found]
            allowed = "1e-12, the error itself" if exact else f"{policy.limit:.2f}"
            names = (policy.dtype, policy.partials, f"`{policy.kernel}`", mask)
            lines.append(f"| {' | '.join((*names, *cells, allowed))} |")
    return "\n".join(lines)


def errors_table(rows: Sequence[ErrorRow]) -> str:
    """Rms and largest error of each result with the most ranks, causal."""
    most = max(row.ranks for row in rows)
    lines = [
        "| inputs | partial results | kernel | " + " | ".join(Results._fields) + " |",
        "| --- | --- | --- |" + " --- |" * len(Results._fields),
    ]
    for policy in policies():
        found = {
            row.result: f"{row.rms:.1e} ({row.largest:.1e})"
            for row in of_policy(rows, policy)
            if (row.mask, row.ranks) == ("causal", most)
        }
        names = (policy.dtype, policy.partials, f"`{policy.kernel}`")
        lines.append(f"| {' | '.join((*names, *(found[x] for x in Results._fields)))} |")
    return "\n".join(lines)


def growth(rows: Sequence[ErrorRow]) -> tuple[float, ErrorRow]:
    """The largest factor between the most ranks and two, and the row in which it is."""
    most = max(row.ranks for row in rows)
    few = {_place(row): row.rms_ratio for row in rows if row.ranks == 2}
    factors = [
        (row.rms_ratio / few[_place(row)], row)
        for row in rows
        if row.ranks == most and row.dtype != "float64"
    ]
    return max(factors, key=lambda pair: pair[0])


def _place(row: ErrorRow) -> tuple[str, ...]:
    return row.dtype, row.kernel, row.mask, row.result


def conditions() -> str:
    """What was measured, and where."""
    machine, problem, rows = read_errors(RESULTS)
    factor, row = growth(rows)
    most = max(row.ranks for row in rows)
    return (
        f"{problem.seeds} sequences of {problem.length:,} tokens, {problem.heads} query heads on "
        f"{problem.kv_heads} KV head{'s' if problem.kv_heads > 1 else ''}, D = {problem.dim}, "
        "normal numbers; without a mask contiguous shards, causal in zig-zag order. Virtual "
        f"ranks, torch {machine['torch']} on {machine['cpu']} ({machine['vectors']}), "
        f"{machine['date'][:10]}. From 2 ranks to {most} the ratio grows by a factor of "
        f"{factor:.2f} at most ({row.dtype} inputs, `{row.kernel}`, {row.mask}, {row.result}); "
        "1.10 is allowed."
    )


def curves(rows: Sequence[ErrorRow]) -> dict[str, list[tuple[int, float]]]:
    """For each dtype of inputs and partial results the worst ratio against the ranks."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.dtype != "float64":
            name = row.dtype if row.partials == row.dtype == "float32" else _short(row)
            worst = found.setdefault(name, {})
            worst[row.ranks] = max(worst.get(row.ranks, 0.0), row.rms_ratio)
    return {name: sorted(worst.items()) for name, worst in found.items()}


def _short(row: ErrorRow) -> str:
    bits = "16-bit" if row.partials == row.dtype else row.partials
    return f"{row.dtype}, {bits} partials"


def picture() -> Picture:
    """The worst ratio of each policy against the number of ranks."""
    title = "From 2 ranks to 32 the error of a ring does not grow"
    return draw_errors(curves(read_errors(RESULTS)[2]), title=title)


def shown() -> str:
    """The picture with its alternative text, in Markdown."""
    told = "; ".join(
        f"{name}: {points[0][1]:.2f} on 1, {points[1][1]:.2f} on {points[1][0]}, "
        f"{points[-1][1]:.2f} on {points[-1][0]}"
        for name, points in curves(read_errors(RESULTS)[2]).items()
    )
    return (
        "![Curves over the number of ranks on a doubling axis, each the worst ratio of out, dq, "
        f"dk and dv. {told}. From 2 ranks on each is level or falls.](accuracy.png)"
    )


def page(text: str) -> str:
    """The page with its blocks replaced."""
    rows = read_errors(RESULTS)[2]
    blocks = {
        "conditions": conditions(),
        "picture": shown(),
        "ratios": ratios_table(rows),
        "errors": errors_table(rows),
    }
    for name, body in blocks.items():
        text = with_block(text, name, body, "tools/accuracy.py")
    return text


def main() -> int:
    """Rewrite the page and the picture."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    drawn = picture()
    drawn.save(PICTURE, dpi=110)
    print(drawn.alt)
    return 0


if __name__ == "__main__":
    sys.exit(main())
