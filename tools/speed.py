"""Write what docs/speed.md and the README show of speed, from stored measurements.

    ringlab bench --case prefill --lengths 16k --heads 2 --json benchmarks/results/speed.json
    python -m tools.speed; python -m tools.readme

Every ``benchmarks/results/speed*.json`` adds its rows. Nothing is measured here, and a test finds
nothing to change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ringlab.bench.losses import LOSSES
from ringlab.bench.machine import measured_on
from ringlab.bench.readings import WAITING
from tools.blocks import with_block

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "speed.md"
COLUMNS = [(mask, phase) for mask in ("full", "causal") for phase in ("forward", "backward")]

Row = dict[str, Any]
"""A row as `ringlab.bench.rows.Row.flat` writes it."""


def stored() -> list[dict[str, Any]]:
    """Every stored measurement: ``{"machine": {...}, "rows": [...]}``."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("speed*.json"))]


def rows() -> list[Row]:
    """The prefill rows of all measurements, the shortest sequences first."""
    found = [row for one in stored() for row in one["rows"] if row["case"] == "prefill"]
    return sorted(found, key=lambda row: row["length"])


def ratios_table(found: Sequence[Row]) -> str:
    """SDPA's CPU time over ringlab's: a line for each length, dtype and head dimension."""
    lines = [
        "| tokens | inputs | D | full, forward | backward | causal zig-zag, forward | backward |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for length, dtype, dim in dict.fromkeys((x["length"], x["dtype"], x["dim"]) for x in found):
        cells = {
            (x["mask"], x["phase"]): f"{x['cpu_ratio']:.2f}"
            for x in found
            if (x["length"], x["dtype"], x["dim"]) == (length, dtype, dim)
        }
        shown = " | ".join(cells.get(column, "") for column in COLUMNS)
        lines.append(f"| {length:,} | {dtype} | {dim} | {shown} |")
    return "\n".join(lines)


def losses_table(found: Iterable[Row]) -> str:
    """What ranks spend beyond SDPA, part by part, in per cent of SDPA's CPU time."""
    names = [*LOSSES.values()]
    lines = [
        "| tokens | inputs | D | mask | phase | " + " | ".join(names)
        + " | together | ratio | bound | waiting |",
        "| --- | --- | --- | --- | --- |" + " --- |" * (len(names) + 4),
    ]  # fmt: skip
    for row in found:
        lost = [row[f"{name}_percent"] for name in names]
        cells = [f"{x:+.1f}" for x in (*lost, sum(lost))]
        cells += [f"{row['least_ratio']:.2f}", f"{row['bound']:.2f}"]
        cells.append(f"{row[f'{WAITING}_percent']:.0f}")
        head = [f"{row['length']:,}", row["dtype"], f"{row['dim']}", row["mask"], row["phase"]]
        lines.append(f"| {' | '.join((*head, *cells))} |")
    return "\n".join(lines)


def conditions() -> str:
    """Where and how each measurement was made, a sentence each."""
    return " ".join(_conditions(one["machine"], one["rows"]) for one in stored())


def _conditions(machine: Row, found: Sequence[Row]) -> str:
    lengths = " and ".join(f"{x:,}" for x in dict.fromkeys(row["length"] for row in found))
    heads = " and ".join(f"{x}" for x in dict.fromkeys(row["heads"] for row in found))
    baselines = {row["dtype"]: row["baseline"] for row in found}
    called = ", ".join(f"{dtype} by {baseline}" for dtype, baseline in baselines.items())
    return (
        f"{lengths} tokens: {machine['ranks']} ranks of {machine['threads']} thread each, {heads} "
        f"heads; medians of {machine['rounds']} rounds {measured_on(machine)}, "
        f"{machine['date'][:10]}; {called}."
    )


def page(text: str) -> str:
    """The page with its blocks replaced."""
    found = rows()
    blocks = {
        "conditions": conditions(),
        "ratios": ratios_table(found),
        "losses": losses_table(found),
    }
    for name, body in blocks.items():
        text = with_block(text, name, body, "tools/speed.py")
    return text


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
