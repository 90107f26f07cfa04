"""What a price says of this machine, beside what it then takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calibration.measure import check_cores, measure
from ringlab.layout import Contiguous, Layout, Striped, ZigZag
from ringlab.machine.machine import Machine
from ringlab.prefill import all_gather_attention, ring_attention
from ringlab.price import price
from ringlab.world import World

METHODS: dict[str, Callable[..., Tensor]] = {
    "ring": ring_attention,
    "all_gather": all_gather_attention,
}


@dataclass(frozen=True)
class Case:
    """One call of a method on this machine.

    Parameters
    ----------
    method : {"ring", "all_gather"}
    layout : Layout
    length : int
        Tokens of the whole sequence.
    dtype : str
    head_dim : int
    heads, kv_heads : int
    causal : bool
    backward : bool
        Whether the backward follows.
    ranks, threads : int
    """

    method: str
    layout: Layout
    length: int
    dtype: str
    head_dim: int = 64
    heads: int = 8
    kv_heads: int = 8
    causal: bool = True
    backward: bool = False
    ranks: int = 2
    threads: int = 1

    def __str__(self) -> str:
        mask = "causal" if self.causal else "full"
        phase = "fwd+bwd" if self.backward else "fwd"
        return (
            f"{self.method:<10} {type(self.layout).__name__:<10} {self.length:>5} "
            f"{self.dtype:<8} D{self.head_dim:<3} {self.heads}/{self.kv_heads} {mask:<6} "
            f"{phase:<7} {self.ranks}x{self.threads}"
        )


CASES = (
    Case("ring", Contiguous(), 4096, "float32", causal=False),
    Case("ring", ZigZag(), 4096, "float32"),
    Case("ring", Contiguous(), 4096, "float32"),
    Case("ring", Striped(), 4096, "float32"),
    Case("ring", ZigZag(), 4096, "float32", head_dim=128),
    Case("ring", ZigZag(), 2048, "float32", backward=True),
    Case("ring", Contiguous(), 2048, "float32", causal=False, backward=True),
    Case("ring", ZigZag(), 4096, "bfloat16", head_dim=128),
    Case("ring", ZigZag(), 4096, "bfloat16", backward=True),
    Case("ring", ZigZag(), 4096, "float32", kv_heads=2),
    Case("all_gather", ZigZag(), 4096, "float32"),
    Case("all_gather", Contiguous(), 2048, "float32", causal=False, backward=True),
    Case("all_gather", Striped(), 4096, "bfloat16", head_dim=128),
    Case("ring", Contiguous(), 2048, "float32", ranks=1, threads=2),
    Case("ring", Contiguous(), 2048, "float32", ranks=1, threads=1, backward=True),
)
"""What `predict_table` compares by default: they need two cores."""


@dataclass(frozen=True)
class Row:
    """A case, its predicted time and its measured one, in seconds."""

    case: Case
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """How much longer than measured the prediction is, as a share of the measured time."""
        return self.predicted / self.measured - 1


def predict_table(cases: Sequence[Case] = CASES, *, repeats: int = 7) -> list[Row]:
    """Predict each case from a recording on meta tensors, then run it on gloo.

    Parameters
    ----------
    cases : sequence of Case
    repeats : int
        Runs of each case, of which the median counts.

    Raises
    ------
    ValueError
        If a case has more ranks times threads than there are cores.
    """
    for case in cases:
        check_cores(case.ranks, case.threads)
    rows = {}
    for ranks, threads in sorted({(case.ranks, case.threads) for case in cases}):
        own = [case for case in cases if (case.ranks, case.threads) == (ranks, threads)]
        machine = measure(
            ranks, threads,
            dtypes=sorted({case.dtype for case in own}),
            head_dims=sorted({case.head_dim for case in own}),
        )  # fmt: skip
        with World(ranks, backend="gloo", threads=threads, timeout=600.0) as world:
            for case in own:
                rows[case] = Row(case, predict(case, machine), _measured(world, case, repeats))
    return [rows[case] for case in cases]


def predict(case: Case, machine: Machine) -> float:
    """Seconds of a case on a machine, from a recording of the virtual world."""
    with World(case.ranks) as world:
        world.run(_step, case, "meta")
        return max(event.end or 0.0 for event in price(world.timeline, machine))


def render(rows: Iterable[Row]) -> str:
    """The table as text, with the median error below."""
    return "\n".join(_lines(list(rows)))


def _lines(rows: list[Row]) -> Iterator[str]:
    yield f"{'case':<66} predicted   measured    error"
    for row in rows:
        yield (
            f"{row.case!s:<66} {row.predicted * 1e3:7.1f} ms {row.measured * 1e3:7.1f} ms "
            f"{row.error:+8.1%}"
        )
    median = statistics.median(abs(row.error) for row in rows)
    yield f"median error {median:.1%} over {len(rows)} cases"


def _measured(world: World, case: Case, repeats: int) -> float:
    """Median over the repeats of the slowest rank's seconds."""
    ranks = world.run(_repeat, case, repeats)
    slowest: list[float] = [max(times) for times in zip(*ranks, strict=True)]
    return statistics.median(slowest)


def _repeat(case: Case, repeats: int) -> list[float]:
    torch.manual_seed(0)
    return [_step(case, "cpu") for _ in range(repeats + 1)][1:]


def _step(case: Case, device: str) -> float:
    """Run the case once on this rank; the seconds it took."""
    rank = dist.get_rank()
    length = case.layout.local_length(rank, case.ranks, case.length)
    q, dout = (_draw(case, case.heads, length, device) for _ in range(2))
    k, v = (_draw(case, case.kv_heads, length, device) for _ in range(2))
    options: dict[str, Any] = {"layout": case.layout, "causal": case.causal, "length": case.length}
    for x in (q, k, v):
        x.requires_grad_(case.backward)
    if device != "meta":
        dist.barrier()
    began = time.perf_counter()
    out = METHODS[case.method](q, k, v, **options)
    if case.backward:
        out.backward(dout)
    return time.perf_counter() - began


def _draw(case: Case, heads: int, length: int, device: str) -> Tensor:
    shape, kind = (1, heads, length, case.head_dim), getattr(torch, case.dtype)
    if device == "meta":
        return torch.empty(shape, dtype=kind, device=device)
    return torch.randn(shape).to(kind)
