"""How far ring attention is from float64, as the ranks grow, beside SDPA on one device."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from ringlab.layout import Contiguous, Layout, ZigZag
from ringlab.numerics.kernels import KERNELS
from ringlab.prefill import ring_attention
from ringlab.world import World

SIZES = (1, 2, 3, 4, 5, 8, 16, 32)
FLOAT64_LIMIT = 1e-12
"""The largest relative error that float64 may have, whatever the ranks."""
FLATNESS = 1.1
"""The largest factor by which a ratio may grow from two ranks to the most."""


class Results(NamedTuple):
    """What attention computes forward and backward, [B, H, L, D] each."""

    out: Tensor
    dq: Tensor
    dk: Tensor
    dv: Tensor


@dataclass(frozen=True)
class Policy:
    """In which precision a ring computes.

    Attributes
    ----------
    dtype : str
        Of the inputs, as ``"bfloat16"``.
    kernel : str
        What computes a block, one of ``ringlab.numerics.available_kernels()``.
    partials : str
        Dtype of a block's result before it is merged.
    limit : float or None
        The largest ratio to one device that is promised; None for float64, whose error is
        bounded itself, by `FLOAT64_LIMIT`.
    """

    dtype: str
    kernel: str
    partials: str
    limit: float | None

    @property
    def name(self) -> str:
        """The policy in words."""
        return f"{self.dtype}, {self.partials} partials, {self.kernel}"


def policies() -> tuple[Policy, ...]:
    """List every pair of a dtype and a kernel that runs on CPU."""
    return tuple(
        _policy(name, kernel)
        for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)
        for kernel, found in KERNELS.items()
        if dtype in found.dtypes and found.devices <= {"cpu"}
        for name in [str(dtype).removeprefix("torch.")]
    )


def _policy(dtype: str, kernel: str) -> Policy:
    if dtype == "float64":
        return Policy(dtype, kernel, dtype, None)
    if dtype == "float32":
        return Policy(dtype, kernel, dtype, 1.3)
    if kernel == "cpu_flash":
        return Policy(dtype, kernel, dtype, 1.5)
    return Policy(dtype, kernel, "float32", 1.05)


@dataclass(frozen=True)
class AccuracyProblem:
    """Self-attention of several sequences, each of numbers of its own.

    Attributes
    ----------
    length, heads, kv_heads, dim : int
    seeds : int
        Sequences; errors are means over them.
    causal : bool
        Zig-zag layout if so, contiguous otherwise.
    """

    length: int = 1021
    heads: int = 2
    kv_heads: int = 1
    dim: int = 64
    seeds: int = 8
    causal: bool = False

    @property
    def mask(self) -> str:
        """``"causal"`` or ``"full"``."""
        return "causal" if self.causal else "full"

    @property
    def layout(self) -> Layout:
        """Which rank has which token."""
        return ZigZag() if self.causal else Contiguous()

    def inputs(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Draw q, k, v and the gradient of the output, [seeds, H, L, D], normal numbers."""
        generator = torch.Generator().manual_seed(0)

        def normal(heads: int) -> Tensor:
            shape = (self.seeds, heads, self.length, self.dim)
            return torch.randn(shape, generator=generator).to(dtype)

        q, k, v = normal(self.heads), normal(self.kv_heads), normal(self.kv_heads)
        return q, k, v, normal(self.heads)


@dataclass(frozen=True)
class ErrorRow:
    """The error of one result of one policy on some ranks.

    Attributes
    ----------
    dtype, kernel, partials : str
        The policy.
    mask : {"full", "causal"}
    ranks : int
    result : {"out", "dq", "dk", "dv"}
    rms : float
        Root mean square of the error over that of the exact result.
    largest : float
        Largest absolute error over the largest absolute value of the exact result.
    rms_ratio, largest_ratio : float
        The same errors over those of SDPA on one device in the same dtype.
    """

    dtype: str
    kernel: str
    partials: str
    mask: str
    ranks: int
    result: str
    rms: float
    largest: float
    rms_ratio: float
    largest_ratio: float

    def flat(self) -> dict[str, str | int | float]:
        """Write it as names and values, four digits of each error."""
        return {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def error_rows(
    problem: AccuracyProblem, chosen: Sequence[Policy], sizes: Sequence[int] = SIZES
) -> Iterator[ErrorRow]:
    """Measure some policies on some numbers of ranks, in the virtual world.

    Parameters
    ----------
    problem : AccuracyProblem
    chosen : sequence of Policy
        Policies of one dtype next to one another share what they are compared with.
    sizes : sequence of int

    Yields
    ------
    ErrorRow
        Four for each policy and number of ranks: out, dq, dk, dv.
    """
    dtype = ""
    for policy in chosen:
        if policy.dtype != dtype:
            dtype = policy.dtype
            given = problem.inputs(getattr(torch, dtype))
            exact = in_float64(given, problem.causal)
            single = [_errors(x, y) for x, y in zip(_alone(given, problem), exact, strict=True)]
        for size in sizes:
            parts = World(size).run(_ring, given, problem, policy.kernel)
            whole = [problem.layout.unshard(list(x)) for x in zip(*parts, strict=True)]
            for name, found, truth, theirs in zip(
                Results._fields, whole, exact, single, strict=True
            ):
                ours = _errors(found, truth)
                yield ErrorRow(
                    policy.dtype, policy.kernel, policy.partials, problem.mask, size, name,
                    *ours, ours[0] / theirs[0], ours[1] / theirs[1],
                )  # fmt: skip


def in_float64(given: Sequence[Tensor], causal: bool) -> Results:
    """Compute attention in float64 by its definition, as torch's math kernel does."""
    sequences = []
    with sdpa_kernel(SDPBackend.MATH):
        for sequence in zip(*given, strict=True):  # one at a time: the scores are in memory
            sequences.append(_attention([x.unsqueeze(0).double() for x in sequence], causal))
    return Results(*(torch.cat(x) for x in zip(*sequences, strict=True)))


def _alone(given: Sequence[Tensor], problem: AccuracyProblem) -> Results:
    """One device, in the dtype of the inputs."""
    return _attention(given, problem.causal)


def _attention(given: Sequence[Tensor], causal: bool) -> Results:
    q, k, v = (x.detach().clone().requires_grad_() for x in given[:3])
    out = scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    return Results(out.detach(), *torch.autograd.grad(out, (q, k, v), given[3]))


def _ring(given: Sequence[Tensor], problem: AccuracyProblem, kernel: str) -> Results:
    """One rank's program."""
    place, layout = (dist.get_rank(), dist.get_world_size()), problem.layout
    q, k, v, dout = (layout.shard(x, *place) for x in given)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = ring_attention(
        *leaves, layout=layout, causal=problem.causal, length=problem.length, kernel=kernel
    )
    return Results(out.detach(), *torch.autograd.grad(out, leaves, dout))


def _errors(found: Tensor, exact: Tensor) -> tuple[float, float]:
    """The rms and the largest error, relative, as means over the sequences."""
    pairs = [(x.double() - y, y) for x, y in zip(found, exact, strict=True)]
    rms = statistics.mean(float(e.norm() / y.norm()) for e, y in pairs)
    return rms, statistics.mean(float(e.abs().max() / y.abs().max()) for e, y in pairs)
