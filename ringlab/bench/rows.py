"""The rows of a benchmark: each problem measured by ranks and by one process in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from ringlab.bench import decode, prefill
from ringlab.bench.decode import DecodeProblem
from ringlab.bench.losses import losses, ratio
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
    losses : mapping of str to float
        Where the ranks lose time, as `ringlab.bench.losses` tells; empty for decode.
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
    losses: Mapping[str, float]

    @property
    def least_ratio(self) -> float:
        """The ratio of CPU times that the losses add up to."""
        return ratio(self.losses)

    @property
    def bound(self) -> float:
        """The same if messages cost nothing."""
        return ratio(self.losses, communication=False)

    def flat(self) -> dict[str, str | int | float]:
        """Write it as one level of names and values, seconds and per cent."""
        result, found = self.result, self.losses
        ratios = {"least_ratio": self.least_ratio, "bound": self.bound} if found else {}
        return {
            "case": self.case, "phase": self.phase, "length": self.length, "heads": self.heads,
            "kv_heads": self.kv_heads, "dim": self.dim, "dtype": self.dtype, "mask": self.mask,
            "baseline": self.baseline, "cpu_s": result.ours.cpu,
            "baseline_cpu_s": result.baseline.cpu, "cpu_ratio": result.ratio,
            "cpu_ratio_low": result.low, "cpu_ratio_high": result.high,
            "wall_s": result.ours.wall, "baseline_wall_s": result.baseline.wall,
            "wall_ratio": result.wall_ratio,
            **ratios, **{f"{name}_percent": share for name, share in found.items()},
        }  # fmt: skip


def prefill_rows(problem: PrefillProblem, ranks: World, alone: World, rounds: int) -> Iterator[Row]:
    """Measure a prefill problem: a row for forward, one for backward."""
    small = replace(problem, length=min(problem.length, WARM_UP))
    ranks.run(prefill.ring, small)
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
    for phase in ("forward", "backward"):
        ours, theirs = ([found[phase] for found in readings[name]] for name in ("ringlab", best))
        yield Row(
            "prefill", phase, problem.length, problem.heads, problem.heads, problem.dim,
            _short(problem.dtype), "causal" if problem.causal else "full", best,
            compare(ours, theirs), losses(ours, theirs),
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
    ours, theirs = ([found[decode.PHASE] for found in readings[x]] for x in ("ringlab", best))
    yield Row(
        "decode", decode.PHASE, problem.length, problem.heads, problem.kv_heads, problem.dim,
        _short(problem.dtype), "full", best, compare(ours, theirs), {},
    )  # fmt: skip


def fastest(readings: Mapping[str, Sequence[Phases]]) -> str:
    """Name the contestant that took the least CPU time, over its ranks and phases."""
    return min(
        readings,
        key=lambda name: sum(x.cpu for phases in readings[name] for x in phases.values()),
    )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
