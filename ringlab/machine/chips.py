"""Chips: dense peak rates, memory, and the factors between a peak and what kernels reach.

Rates are dense; data sheets that print rates with structured sparsity are halved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ringlab.machine.benchmarks import (
    FLASH_ATTENTION_2_A100,
    FLASH_ATTENTION_3_H100,
    FLASH_ATTENTION_4_B200,
    Benchmark,
)
from ringlab.machine.figures import Figure

GEMM = Figure(
    0.8, "Shah et al., FlashAttention-3, arXiv:2407.08608, section 1: optimised GEMM reaches 80 to "
    "90 % of the peak on Hopper", "2024-07",
)  # fmt: skip
STREAM = Figure(
    3000 / 3350, "github.com/deepseek-ai/FlashMLA, README: 3000 GB/s in a memory-bound decode on "
    "H800 SXM5, whose memory has 3350 GB/s", "2025-02",
)  # fmt: skip
LAUNCH = Figure(
    0.9e-6, "NVIDIA Technical Blog, Getting Started with CUDA Graphs: 3.8 µs a kernel of 2.9 µs "
    "when the host runs ahead", "2019-09",
)  # fmt: skip


@dataclass(frozen=True)
class Chip:
    """One accelerator, or the share of a CPU that one rank has.

    Parameters
    ----------
    name : str
    rates : mapping of str to Figure
        Dense FLOP/s of a matrix product, by dtype.
    memory : Figure
        Bytes.
    bandwidth : Figure
        Bytes/s of memory.
    attention : mapping of str to Benchmark
        By dtype, shares of the peak that attention tiles reach. Other dtypes: as a matrix
        product.
    matmul, stream, merge : Figure
        Share of the peak that a matrix product reaches, and of the bandwidth that a
        memory-bound kernel and the merge of two partial results reach.
    launch : Figure
        Seconds that each kernel costs beside its work.
    compute_capability : int
        NVIDIA generation times ten, 0 for others; decides on collectives in the switch.
    """

    name: str
    rates: Mapping[str, Figure]
    memory: Figure
    bandwidth: Figure
    attention: Mapping[str, Benchmark] = field(default_factory=dict)
    matmul: Figure = GEMM
    stream: Figure = STREAM
    merge: Figure = STREAM
    launch: Figure = LAUNCH
    compute_capability: int = 0
    notes: tuple[str, ...] = field(default=())

    def rate(self, dtype: str) -> Figure:
        """Dense peak for a dtype.

        Raises
        ------
        ValueError
            If the chip has no figure for it.
        """
        if dtype not in self.rates:
            raise ValueError(
                f"{self.name} has no figure for {dtype}; it has {', '.join(self.rates)}."
            )
        return self.rates[dtype]


def _rates(sixteen: float, single: float, double: float, source: str, date: str
           ) -> dict[str, Figure]:  # fmt: skip
    """Peaks in TFLOP/s for 16 bit, float32 (no TF32: torch's default) and float64."""
    values = {"bfloat16": sixteen, "float16": sixteen, "float32": single, "float64": double}
    return {name: Figure(value * 1e12, source, date) for name, value in values.items()}


def _sixteen_bit(benchmark: Benchmark) -> dict[str, Benchmark]:
    return {"bfloat16": benchmark, "float16": benchmark}


_FA2, _FA3, _FA4 = map(
    _sixteen_bit, (FLASH_ATTENTION_2_A100, FLASH_ATTENTION_3_H100, FLASH_ATTENTION_4_B200)
)
_A100 = ("NVIDIA A100 data sheet, 80GB SXM", "2021-06")
_H100 = ("NVIDIA H100 data sheet, SXM; rates with sparsity halved", "2023-03")
_H200 = ("NVIDIA H200 data sheet, SXM; rates with sparsity halved", "2023-11")
_B200 = ("NVIDIA Blackwell architecture technical brief, HGX B200, dense", "2024-03")
_GB200 = ("NVIDIA Blackwell architecture technical brief, GB200 NVL72, dense", "2024-03")
_MI300X = ("AMD Instinct MI300X data sheet", "2023-12")

CHIPS: dict[str, Chip] = {
    "a100": Chip("A100 80GB SXM", _rates(312, 19.5, 19.5, *_A100), Figure(80e9, *_A100),
                 Figure(2.039e12, *_A100), _FA2, compute_capability=80),
    "h100": Chip("H100 80GB SXM", _rates(989.4, 66.9, 66.9, *_H100), Figure(80e9, *_H100),
                 Figure(3.35e12, *_H100), _FA3, compute_capability=90),
    "h200": Chip("H200 141GB SXM", _rates(989.4, 66.9, 66.9, *_H200), Figure(141e9, *_H200),
                 Figure(4.8e12, *_H200), _FA3, compute_capability=90),
    "b200": Chip("B200 180GB SXM", _rates(2250, 80, 40, *_B200), Figure(180e9, *_B200),
                 Figure(8e12, *_B200), _FA4, compute_capability=100),
    "gb200": Chip("B200 in GB200 NVL72", _rates(2500, 80, 40, *_GB200), Figure(186e9, *_GB200),
                  Figure(8e12, *_GB200), _FA4, compute_capability=100),
    "mi300x": Chip(
        "MI300X 192GB", _rates(1307.4, 163.4, 163.4, *_MI300X), Figure(192e9, *_MI300X),
        Figure(5.3e12, *_MI300X), _FA2,
        notes=("attention at the share of the peak that FlashAttention-2 reaches on A100: no "
               "published table over length and mask was found",),
    ),
}  # fmt: skip
