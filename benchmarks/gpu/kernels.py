"""Each kernel of this device: error against float64, and time."""

from __future__ import annotations

from typing import Any

from benchmarks.gpu.clock import seconds
from benchmarks.gpu.place import Place
from benchmarks.gpu.scale import Scale
from benchmarks.peers.problem import RESULTS, Problem, answer, error
from ringlab.numerics import attend, attend_backward, available_kernels


def run(place: Place, scale: Scale) -> list[dict[str, Any]]:
    """Examine every kernel, causal and full; one that does not take the problem says why."""
    rows = []
    for causal in (False, True):
        for report in available_kernels():
            if {place.device, "any"} & set(report.devices):
                row = {"kernel": report.name, "causal": causal}
                if not report.usable or scale.dtype not in report.dtypes:
                    row["failure"] = report.reason or f"takes no {scale.dtype}"
                else:
                    row |= _row(report.name, causal, place, scale)
                rows.append(row)
    return rows


def _row(kernel: str, causal: bool, place: Place, scale: Scale) -> dict[str, Any]:
    small = _problem(scale, scale.examined, causal)
    q, k, v, dout = (x.to(place.device) for x in small.tensors())
    done = attend(q, k, v, causal=causal, kernel=kernel)
    gradients = attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, kernel=kernel)
    exact = answer(small)
    found = zip(RESULTS, (done.out, *gradients), strict=True)
    errors = {name: error(x.cpu(), exact[name]) for name, x in found}
    if kernel == "reference":  # its scores of a long sequence would not fit
        return {"errors": errors}

    q, k, v, dout = (x.to(place.device) for x in _problem(scale, scale.tokens, causal).tensors())
    done = attend(q, k, v, causal=causal, kernel=kernel)
    forward = seconds(
        lambda: attend(q, k, v, causal=causal, kernel=kernel), place.device, scale.steps
    )
    backward = seconds(
        lambda: attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, kernel=kernel),
        place.device,
        scale.steps,
    )
    pairs = scale.tokens * (scale.tokens + 1) // 2 if causal else scale.tokens**2
    return {
        "errors": errors,
        "forward_s": forward,
        "backward_s": backward,
        "forward_flops": 4 * scale.dim * scale.heads * pairs / forward,
    }


def _problem(scale: Scale, length: int, causal: bool) -> Problem:
    return Problem(length, scale.heads, scale.kv_heads, scale.dim, scale.dtype, causal)
