"""How long an operator takes: its FLOPs at the rate of its kernel, or its bytes, or launching."""

from __future__ import annotations

from dataclasses import dataclass

from ringlab.machine.chips import Chip
from ringlab.timeline import Work


@dataclass(frozen=True)
class Roof:
    """What limits an operator, in seconds.

    Attributes
    ----------
    flops, bytes : float
        At the rates that its kernel reaches.
    launch : float
        Starting its kernels; comes on top.
    """

    flops: float
    bytes: float
    launch: float

    @property
    def seconds(self) -> float:
        """The longer of computing and moving, and launching."""
        return max(self.flops, self.bytes) + self.launch


def roof(work: Work, chip: Chip) -> Roof:
    """Put an operator under the roofline of a chip.

    Raises
    ------
    ValueError
        If the chip has no rate for the dtype of something that computes.

    Notes
    -----
    FLOPs go at ``peak · efficiency``. The efficiency of an attention tile is that of the chip's
    published kernel for the dtype, at the shorter side of the tile; everything else that
    computes has that of a matrix product. Bytes go at ``bandwidth · stream``, those of a merge
    at ``bandwidth · merge``. A tile narrower than the shortest published has the efficiency of
    that one.
    """
    share = chip.merge if work.kind == "merge" else chip.stream
    bandwidth = chip.bandwidth.value * share.value
    moving = (work.bytes_read + work.bytes_written) / bandwidth
    computing = work.flops / rate(work, chip) if work.flops else 0.0
    return Roof(computing, moving, work.launches * chip.launch.value)


def rate(work: Work, chip: Chip) -> float:
    """FLOP/s that the kernel of an operator reaches."""
    return chip.rate(work.dtype).value * efficiency(work, chip)


def efficiency(work: Work, chip: Chip) -> float:
    """Share of the peak that the kernel of an operator reaches."""
    kernel = chip.attention.get(work.dtype)
    if kernel is None or not work.kind.startswith("attention"):
        return chip.matmul.value
    side = min(work.queries, work.keys)
    return kernel.efficiency(work.kind, work.causal, work.head_dim, side)
