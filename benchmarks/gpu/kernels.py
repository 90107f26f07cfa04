"""Each kernel of this device: error against float64, and time."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.gpu.clock import reading
from benchmarks.gpu.place import Place
from benchmarks.gpu.scale import Scale
from benchmarks.peers.problem import RESULTS, Problem, answer, error
from ringlab.bench.readings import Phases, interleave
from ringlab.numerics import attend, attend_backward, available_kernels

FORWARD, BACKWARD = "forward", "backward"


def run(place: Place, scale: Scale) -> list[dict[str, Any]]:
    """Examine every kernel, causal and full; one that does not take the problem says why."""
    rows = []
    for causal in (False, True):
        taken = []
        for report in available_kernels():
            if {place.device, "any"} & set(report.devices):
                row: dict[str, Any] = {"kernel": report.name, "causal": causal}
                if not report.usable or scale.dtype not in report.dtypes:
                    row["failure"] = report.reason or f"takes no {scale.dtype}"
                else:
                    row["errors"] = _errors(report.name, causal, place, scale)
                    taken.append(row)
                rows.append(row)
        _time([row for row in taken if row["kernel"] != "reference"], causal, place, scale)
    return rows


def _errors(kernel: str, causal: bool, place: Place, scale: Scale) -> dict[str, float]:
    problem = _problem(scale, scale.examined, causal)
    q, k, v, dout = (x.to(place.device) for x in problem.tensors())
    done = attend(q, k, v, causal=causal, kernel=kernel)
    gradients = attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, kernel=kernel)
    exact = answer(problem)
    found = zip(RESULTS, (done.out, *gradients), strict=True)
    return {name: error(x.cpu(), exact[name]) for name, x in found}


def _time(rows: list[dict[str, Any]], causal: bool, place: Place, scale: Scale) -> None:
    """Time the kernels of these rows in turns. The reference's long scores would not fit."""
    q, k, v, dout = (x.to(place.device) for x in _problem(scale, scale.tokens, causal).tensors())

    def read(kernel: str) -> Phases:
        done = attend(q, k, v, causal=causal, kernel=kernel)

        def forward() -> object:
            return attend(q, k, v, causal=causal, kernel=kernel)

        def backward() -> object:
            return attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, kernel=kernel)

        steps: dict[str, Callable[[], object]] = {FORWARD: forward, BACKWARD: backward}
        return {phase: reading(step, place.device, scale.steps) for phase, step in steps.items()}

    names = [row["kernel"] for row in rows]
    readings = interleave({name: lambda name=name: read(name) for name in names}, scale.rounds)
    pairs = scale.tokens * (scale.tokens + 1) // 2 if causal else scale.tokens**2
    for row in rows:
        for phase in (FORWARD, BACKWARD):
            walls = [one[phase].wall for one in readings[row["kernel"]]]
            row[f"{phase}_s"] = statistics.median(walls)
        row["forward_flops"] = 4 * scale.dim * scale.heads * pairs / row["forward_s"]


def _problem(scale: Scale, length: int, causal: bool) -> Problem:
    return Problem(length, scale.heads, scale.kv_heads, scale.dim, scale.dtype, causal)
