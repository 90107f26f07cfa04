"""What a row would be: as the published program, as ringlab, and as its layout's bound alone."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.published.recordings import (
    Phases,
    Problem,
    Step,
    forward_seconds,
    kernel_seconds,
    of_ringlab,
    of_variant,
    phase_seconds,
)
from benchmarks.published.rows import KERNEL, UNITS, Row
from benchmarks.published.variants import VARIANTS
from ringlab.layout import Contiguous
from ringlab.machine import Machine
from ringlab.machine.published import machine_as_published


@dataclass(frozen=True)
class Prediction:
    """A row's predictions, in its unit; None where nothing is priced.

    Attributes
    ----------
    variant, ringlab : float or None
        The published program, and `ringlab.ring_attention` in its layout.
    bound : float or None
        The baseline: the busiest rank's tiles at the speed of one kernel over a whole shard; no
        message and no merge.
    """

    variant: float | None
    ringlab: float | None
    bound: float | None


def predict(row: Row) -> Prediction:
    """Price what a row measures."""
    if not row.program:
        return Prediction(None, None, None)
    machine = machine_as_published(row.machine, row.ranks)
    problem = Problem(row.ranks, row.tokens, row.batch, row.heads, row.kv_heads, row.head_dim)
    kernel = _of_phase(row, kernel_seconds(problem, row.causal, machine))
    if row.program == KERNEL:
        return Prediction(_kernel_in_unit(row, kernel), None, None)
    variant = VARIANTS[row.program]
    ideal = row.ranks * kernel

    def in_unit(seconds: float) -> float:
        return 100 * ideal / seconds if row.unit == "% of ideal" else seconds / UNITS[row.unit]

    return Prediction(
        in_unit(_seconds(row, of_variant(variant), problem, machine)),
        in_unit(_seconds(row, of_ringlab(variant.layout, row.causal), problem, machine)),
        in_unit(_shards_of_work(row) * kernel),
    )


def _seconds(row: Row, step: Step, problem: Problem, machine: Machine) -> float:
    if row.phase == "forward" and not row.alternating:
        return forward_seconds(step, problem, machine)
    return _of_phase(row, phase_seconds(step, problem, machine))


def _of_phase(row: Row, phases: Phases) -> float:
    found: float = getattr(phases, row.phase)
    return found


def _shards_of_work(row: Row) -> int:
    """How many times the pairs of one shard with itself the busiest rank computes."""
    unbalanced = row.causal and isinstance(VARIANTS[row.program].layout, Contiguous)
    return 2 * row.ranks - 1 if unbalanced else row.ranks


def _kernel_in_unit(row: Row, seconds: float) -> float:
    if row.unit != "TFLOP/s":
        return seconds / UNITS[row.unit]
    pairs = row.tokens * (row.tokens + 1) // 2 if row.causal else row.tokens**2
    products = {"forward": 2, "backward": 5, "both": 7}[row.phase]
    flops = 2 * products * row.batch * row.heads * row.head_dim * pairs
    return flops / seconds / UNITS[row.unit]
