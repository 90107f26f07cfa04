"""The rows of a benchmark: each problem measured by ranks and by one process in turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from ringlab.bench import decode, prefill
from ringlab.bench.decode import DecodeProblem
from ringlab.bench.parts import PARTS, WAITING
from ringlab.bench.prefill import PrefillProblem
from ringlab.bench.readings import Comparison, Phases, compare, interleave, over_ranks
from ringlab.world import World

WARM_UP = 2048
"""Tokens of the problem that each program runs first: what is done once in a process, and which
way to call SDPA is the fastest here."""
DEADLINE = 3600.0


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    case : {"prefill", "decode"}
    phase : str
        ``"forward"``, ``"backward"`` or ``"a token"``.
    length, heads, kv_heads, dim : int
    dtype : str
    mask : {"full", "causal"}
        Causal prefill is in zig-zag order.
    baseline : str
        What the one process ran.
    result : Comparison
    parts : mapping of str to float
        Where ringlab's CPU time went, in seconds of all ranks; empty for decode.
    """

    case: str
    phase: str
    length: int
    heads: int
    kv_heads: int
    dim: int
    dtype: str
    mask: str
    baseline: str
    result: Comparison
    parts: Mapping[str, float]

    def shares(self) -> dict[str, float]:
        """Express the parts in per cent of the baseline's CPU time, and of its wall time waiting.

        What is not waiting adds up to 100 / ratio, but for what differs between two runs.
        """
        if not self.parts:
            return {}
        cpu, wall = self.result.baseline.cpu, self.result.baseline.wall
        found = {part: 100 * self.parts[part] / cpu for part in PARTS}
        return {**found, WAITING: 100 * self.parts[WAITING] / wall}

    def flat(self) -> dict[str, str | int | float]:
        """Write it as one level of names and values, seconds and per cent."""
        result = self.result
        return {
            "case": self.case, "phase": self.phase, "length": self.length, "heads": self.heads,
            "kv_heads": self.kv_heads, "dim": self.dim, "dtype": self.dtype, "mask": self.mask,
            "baseline": self.baseline, "cpu_s": result.ours.cpu,
            "baseline_cpu_s": result.baseline.cpu, "cpu_ratio": result.ratio,
            "cpu_ratio_low": result.low, "cpu_ratio_high": result.high,
            "wall_s": result.ours.wall, "baseline_wall_s": result.baseline.wall,
            "wall_ratio": result.wall_ratio,
            **{f"{part}_percent": share for part, share in self.shares().items()},
        }  # fmt: skip


def prefill_rows(problem: PrefillProblem, ranks: World, alone: World, rounds: int) -> Iterator[Row]:
    """Measure a prefill problem: a row for forward, one for backward."""
    small = replace(problem, length=min(problem.length, WARM_UP))
    for program in (prefill.ring, prefill.ring_in_parts):
        ranks.run(program, small)
    kinds = {"SDPA": problem.dtype, "SDPA in float32": torch.float32}
    if problem.dtype == torch.float32:
        del kinds["SDPA in float32"]
    best = fastest({name: alone.run(prefill.single, small, kinds[name]) for name in kinds})
    readings = interleave(
        {
            "ringlab": lambda: over_ranks(ranks.run(prefill.ring, problem)),
            best: lambda: over_ranks(alone.run(prefill.single, problem, kinds[best])),
        },
        rounds,
    )
    parts = ranks.run(prefill.ring_in_parts, problem)
    for phase in ("forward", "backward"):
        yield Row(
            "prefill", phase, problem.length, problem.heads, problem.heads, problem.dim,
            _short(problem.dtype), "causal" if problem.causal else "full", best,
            _compared(readings, best, phase), _together([rank[phase] for rank in parts]),
        )  # fmt: skip


def decode_rows(problem: DecodeProblem, ranks: World, alone: World, rounds: int) -> Iterator[Row]:
    """Measure a decode problem."""
    ranks.run(decode.split_k, problem)
    best = fastest({form: alone.run(decode.single, problem, form) for form in decode.FORMS})
    readings = interleave(
        {
            "ringlab": lambda: over_ranks(ranks.run(decode.split_k, problem)),
            best: lambda: over_ranks(alone.run(decode.single, problem, best)),
        },
        rounds,
    )
    yield Row(
        "decode", decode.PHASE, problem.length, problem.heads, problem.kv_heads, problem.dim,
        _short(problem.dtype), "full", best, _compared(readings, best, decode.PHASE), {},
    )  # fmt: skip


def fastest(readings: Mapping[str, Sequence[Phases]]) -> str:
    """Name the contestant that took the least CPU time, over its ranks and phases."""
    return min(
        readings,
        key=lambda name: sum(x.cpu for phases in readings[name] for x in phases.values()),
    )


def _compared(readings: Mapping[str, list[Phases]], baseline: str, phase: str) -> Comparison:
    ours, theirs = ([found[phase] for found in readings[name]] for name in ("ringlab", baseline))
    return compare(ours, theirs)


def _together(ranks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """CPU time of all ranks; of waiting, the mean."""
    total = {part: sum(rank[part] for rank in ranks) for part in PARTS}
    return {**total, WAITING: statistics.mean(rank[WAITING] for rank in ranks)}


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
