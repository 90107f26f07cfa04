"""What each library can: small problems of every kind, run and compared with float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.measure import PHASES, look, same_dtype_errors
from benchmarks.peers.peer import FORWARD
from benchmarks.peers.problem import Problem, answer
from benchmarks.peers.ranks import Ranks

CASES = {
    "full": Problem(512, 8, 8, 32, "float32", causal=False),
    "causal": Problem(512, 8, 8, 32, "float32", causal=True),
    "GQA": Problem(512, 8, 2, 32, "float32", causal=True),
    "odd length": Problem(511, 8, 8, 32, "float32", causal=True),
    "bfloat16": Problem(512, 8, 8, 32, "bfloat16", causal=True),
}
"""One trait more than plain causal attention in each of the last three."""
TOLERANCE = 10.0
"""An error that is so many times that of SDPA in the same dtype is wrong, not rounding."""


def examine(contestants: Sequence[Ranks]) -> list[dict[str, Any]]:
    """Run every case on every library: what it errs by, what it refuses, and the verdict."""
    found: list[dict[str, Any]] = []
    for case, problem in CASES.items():
        exact, allowed = answer(problem), same_dtype_errors(problem)
        for ranks in contestants:
            findings = look(ranks, problem, exact)
            found.append(
                {
                    "library": ranks.peer.name,
                    "case": case,
                    "errors": findings.errors,
                    "failure": findings.failure,
                    "verdict": verdict(findings.errors, findings.failure, allowed),
                }
            )
    return found


def verdict(errors: dict[str, float], failure: dict[str, str], allowed: dict[str, float]) -> str:
    """Judge a case in a few words: right, what is wrong, and what does not run."""
    if FORWARD in failure:
        return "fails"
    wrong = [name for name, size in errors.items() if size > TOLERANCE * allowed[name]]
    words = f"wrong: {', '.join(wrong)}" if wrong else "right"
    if PHASES[-1] in failure:
        words = f"forward {words}; backward fails"
    return words
