"""Published speeds of attention kernels: what share of a chip's peak a tile reaches.

Every number stands as it was published, in TFLOP/s of the true work (half for a causal
tile; backward counted as 2.5 times forward), beside the peak of the chip that it was
measured on. The share of that peak is what a price uses.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)

Key = tuple[str, bool, int]
"""Kind of work, causal or not, head dimension."""


@dataclass(frozen=True)
class Curve:
    """A kernel's speed over the length of a tile.

    Parameters
    ----------
    lengths : tuple of int
        Ascending.
    rates : tuple of float
        FLOP/s at each.
    """

    lengths: tuple[int, ...]
    rates: tuple[float, ...]

    def at(self, length: int) -> float:
        """Interpolate over the logarithm of the length; beyond the ends the end counts."""
        if length <= self.lengths[0]:
            return self.rates[0]
        if length >= self.lengths[-1]:
            return self.rates[-1]
        right = bisect_left(self.lengths, length)
        low, high = self.lengths[right - 1], self.lengths[right]
        share = math.log(length / low) / math.log(high / low)
        return self.rates[right - 1] + share * (self.rates[right] - self.rates[right - 1])


@dataclass(frozen=True)
class Benchmark:
    """The published speeds of one attention kernel.

    Parameters
    ----------
    kernel : str
    peak : float
        FLOP/s of the chip it was measured on, dense, 16 bit.
    curves : dict
        From (kind, causal, head dimension) to a `Curve`.
    source, date : str
    note : str
        What is not as published.
    """

    kernel: str
    peak: float
    curves: dict[Key, Curve]
    source: str
    date: str
    note: str = ""

    def efficiency(self, kind: str, causal: bool, head_dim: int, length: int) -> float:
        """Share of the peak that a tile reaches; the nearest head dimension counts."""
        known = sorted(dim for k, c, dim in self.curves if (k, c) == (kind, causal))
        nearest = min(known, key=lambda dim: (abs(dim - head_dim), dim))
        return self.curves[kind, causal, nearest].at(length) / self.peak


def _tera(*rates: float) -> Curve:
    return Curve(LENGTHS, tuple(rate * 1e12 for rate in rates))


_FORWARD, _BACKWARD = "attention", "attention backward"


def _with_causal_backward(curves: dict[Key, Curve]) -> dict[Key, Curve]:
    """Add causal backward curves: full ones, slowed as the causal mask slows the forward."""
    added = dict(curves)
    for (kind, causal, dim), full in curves.items():
        if kind == _BACKWARD and not causal:
            forward, masked = curves[_FORWARD, False, dim], curves[_FORWARD, True, dim]
            rates = (
                rate * slow / fast
                for rate, slow, fast in zip(full.rates, masked.rates, forward.rates, strict=True)
            )
            added[_BACKWARD, True, dim] = Curve(full.lengths, tuple(rates))
    return added


def _both(curves: dict[tuple[bool, int], Curve]) -> dict[Key, Curve]:
    """Curves of forward and backward together count for each."""
    return {(kind, *key): curve for key, curve in curves.items() for kind in (_FORWARD, _BACKWARD)}


FLASH_ATTENTION_2_A100 = Benchmark(
    "FlashAttention-2 on A100 80GB SXM4",
    312e12,
    _both(
        {
            (False, 64): _tera(132, 153, 162, 171, 175, 176),
            (True, 64): _tera(88, 119, 140, 156, 165, 171),
            (False, 128): _tera(151, 173, 187, 196, 201, 203),
            (True, 128): _tera(99, 133, 155, 173, 182, 189),
        }
    ),
    "Dao, FlashAttention-2, arXiv:2307.08691, figure 4 (forward and backward together), as drawn "
    "in github.com/Dao-AILab/flash-attention, assets/flash2_a100_fwd_bwd_benchmark.png",
    "2023-07",
    "the speed of forward and backward together counts for each of them; 151 for head dimension "
    "128 at 512 is read off the height of the bar, the label being hidden",
)

FLASH_ATTENTION_3_H100 = Benchmark(
    "FlashAttention-3 on H100 80GB SXM5",
    989.4e12,
    _with_causal_backward(
        {
            (_FORWARD, False, 64): _tera(333, 392, 460, 476, 496, 497),
            (_FORWARD, True, 64): _tera(197, 265, 371, 420, 460, 473),
            (_FORWARD, False, 128): _tera(467, 565, 625, 638, 646, 648),
            (_FORWARD, True, 128): _tera(292, 423, 521, 579, 602, 616),
            (_BACKWARD, False, 64): _tera(272, 363, 422, 453, 472, 474),
            (_BACKWARD, False, 128): _tera(316, 424, 501, 542, 559, 561),
        }
    ),
    "Shah et al., FlashAttention-3, arXiv:2407.08608, figures 5 (forward, also in "
    "github.com/Dao-AILab/flash-attention, assets/flash3_fp16_fwd.png) and 6 (backward)",
    "2024-07",
    "causal backward is not published: full backward, slowed as the mask slows the forward",
)

FLASH_ATTENTION_4_B200 = Benchmark(
    "FlashAttention-4 on B200",
    # The best published speed is 71 % of the peak where the curve of FlashAttention-3 ends.
    FLASH_ATTENTION_3_H100.efficiency(_FORWARD, False, 128, 16384) / 0.71 * 989.4e12,
    FLASH_ATTENTION_3_H100.curves,
    "Zadouri et al., FlashAttention-4, arXiv:2603.05451, abstract: up to 1613 TFLOP/s, 71 % of "
    "the peak",
    "2026-03",
    "only the best forward speed is used: the shape over length, mask and direction is that of "
    "FlashAttention-3 on H100, scaled so that its best forward is 71 % of the peak",
)
