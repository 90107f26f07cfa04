"""The tables of a comparison, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.peer import BOTH, FORWARD
from benchmarks.peers.problem import RESULTS, Problem
from benchmarks.stored import Data
from ringlab.bench.machine import measured_on

Row = dict[str, Any]
NONE = "-"
OURS, ALONE = "ringlab", "one process, SDPA"
MARGIN = 0.05
"""Two runs of the same differ by as much in time."""


def tables(data: Data) -> str:
    """Every problem's table, what each library can, and how each was run."""
    problems = list(dict.fromkeys(_problem(row) for row in data["rows"]))
    parts = [
        f"{_title(problem)}\n\n{timing([r for r in data['rows'] if _problem(r) == problem])}"
        for problem in problems
    ]
    parts += [ahead(data["rows"]), abilities(data["abilities"]), how(data), conditions(data)]
    return "\n\n".join(parts)


def summary(data: Data) -> str:
    """A line for each library: CPU time and errors on the float32 problems, and what it can."""
    rows = [row for row in data["rows"] if row["problem"]["dtype"] == "float32"]
    verdicts: dict[str, dict[str, list[str]]] = {}
    for found in data["abilities"]:
        if found["verdict"] != "right":
            said = verdicts.setdefault(found["library"], {})
            said.setdefault(found["verdict"], []).append(found["case"])
    lines = [
        "| | full, forward | and backward | causal, forward | and backward | largest error "
        "| what is not right |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for library in (one["name"] for one in data["libraries"]):
        mine = [row for row in rows if row["library"] == library]
        times = [_time(row, phase) for row in mine for phase in (FORWARD, BOTH)] or [NONE] * 4
        largest = max((x for row in mine for x in row["errors"].values()), default=None)
        cells = [library, *times, NONE if largest is None else f"{largest:.1e}"]
        said = verdicts.get(library, {})
        wrong = "; ".join(f"{verdict} ({', '.join(on)})" for verdict, on in said.items())
        lines.append(f"| {' | '.join([*cells, wrong])} |")
    problem = _problem(rows[0])
    what = (
        f"{problem.length:,} tokens, {problem.heads} heads, D = {problem.dim}, float32: CPU "
        "seconds of all ranks, wall seconds in brackets; errors relative to float64, the largest "
        "of out, dQ, dK and dV. Libraries with * are run with a CPU operator in place of a CUDA "
        "one. "
    )
    return "\n".join([*lines, "", what + conditions(data)])


def timing(rows: Sequence[Row]) -> str:
    """Errors, times, traffic and memory of all libraries on one problem."""
    lines = [
        "| | error of out, dQ, dK, dV | forward, CPU s (wall s) | and backward | sent, in KV shards"
        " | memory, MB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        unit = _problem(row).kv_shard_bytes
        sent = [row["sent"].get(phase) for phase in (FORWARD, BOTH)]
        units = " / ".join(NONE if x is None else f"{x / unit:.2f}" for x in sent)
        wrong = [f"{row['errors'][x]:.1e}" if x in row["errors"] else NONE for x in RESULTS]
        peak = NONE if row["peak"] is None else f"{row['peak'] / 1e6:.0f}"
        cells = [row["library"], ", ".join(wrong), _time(row, FORWARD), _time(row, BOTH)]
        lines.append(f"| {' | '.join([*cells, units, peak])} |")
    return "\n".join(lines)


def ahead(rows: Sequence[Row]) -> str:
    """Say where another library over ranks is before ringlab by more than `MARGIN`."""
    lines = []
    for problem in dict.fromkeys(_problem(row) for row in rows):
        here = {row["library"]: row for row in rows if _problem(row) == problem}
        ours = _measures(here.pop(OURS))
        for name, row in here.items():
            theirs = _measures(row)
            better = [
                f"{what} {value:.2g} against {ours[what]:.2g}"
                for what, value in theirs.items()
                if value < ours[what] * (1 - MARGIN)
            ]
            if better and name != ALONE:
                lines.append(f"* {name}, {_title(problem)[:-1]}: {', '.join(better)}")
    return "\n".join(
        [f"Before ringlab by more than {100 * MARGIN:.0f} %:\n", *(lines or ["* nobody"])]
    )


def abilities(found: Sequence[Row]) -> str:
    """A line for each library, a column for each kind of problem."""
    cases = list(dict.fromkeys(row["case"] for row in found))
    lines = [f"| | {' | '.join(cases)} |", "| --- |" + " --- |" * len(cases)]
    for library in dict.fromkeys(row["library"] for row in found):
        verdicts = {row["case"]: row["verdict"] for row in found if row["library"] == library}
        lines.append(f"| {library} | {' | '.join(verdicts[case] for case in cases)} |")
    return "\n".join(lines)


def how(data: Data) -> str:
    """Say what each library ran, and in which words it failed first."""
    lines = []
    for library in data["libraries"]:
        words = (
            f"* {library['name']} ({library['package']} {library['version']}): {library['how']}."
        )
        said = _first_words(library["name"], data["abilities"])
        why = f"{library['why']}." if library["why"] else ""
        lines.append(" ".join(part for part in (words, said, why) if part))
    return "\n".join(lines)


def conditions(data: Data) -> str:
    """Say where and how it was measured."""
    machine = data["machine"]
    return (
        f"Two ranks of one thread each over gloo, medians of {machine['rounds']} rounds in turns, "
        f"{measured_on(machine)}, Python {machine['python']}, {machine['date'][:10]}."
    )


def _first_words(library: str, found: Sequence[Row]) -> str:
    said: dict[str, list[str]] = {}
    for row in found:
        if row["library"] == library and row["failure"]:
            text = next(iter(row["failure"].values()))
            said.setdefault(re.sub(r"[|`]", "'", text), []).append(row["case"])
    return " ".join(f"On {', '.join(cases)}: `{text}`." for text, cases in said.items())


def _time(row: Row, phase: str) -> str:
    if phase in row["cpu_s"]:
        return f"{row['cpu_s'][phase]:.2f} ({row['wall_s'][phase]:.2f})"
    return "fails" if phase in row["failure"] else NONE


def _measures(row: Row) -> dict[str, float]:
    times = {f"CPU s of {phase}": seconds for phase, seconds in row["cpu_s"].items()}
    return {f"error of {name}": x for name, x in row["errors"].items()} | times


def _problem(row: Row) -> Problem:
    return Problem(**row["problem"])


def _title(problem: Problem) -> str:
    mask = "causal" if problem.causal else "full"
    return (
        f"{problem.length:,} tokens, {mask}, {problem.heads} query heads on {problem.kv_heads} KV "
        f"heads, D = {problem.dim}, {problem.dtype}:"
    )
