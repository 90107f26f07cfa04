"""Machines as published measurements of ring attention used them: older kernels, the H800.

`CHIPS` has each chip with its best published kernel. What others measured ran on the kernel of
its day, forward and backward at speeds of their own, and partly on a chip that is sold no more.
"""

from __future__ import annotations

from dataclasses import replace

from ringlab.machine.benchmarks import (
    FLASH_ATTENTION_2_A100,
    FLASH_ATTENTION_3_H100,
    LENGTHS,
    Benchmark,
    Curve,
    Key,
)
from ringlab.machine.chips import CHIPS, Chip
from ringlab.machine.figures import Figure
from ringlab.machine.links import LINKS, Link
from ringlab.machine.machine import Machine
from ringlab.machine.topology import Topology
from ringlab.machine.transport import NCCL

_FORWARD, _BACKWARD = "attention", "attention backward"
_BACKWARD_SHARE = 2.5  # FLOPs of backward over those of forward


def _tera(*rates: float) -> Curve:
    return Curve(LENGTHS, tuple(rate * 1e12 for rate in rates))


def _apart(together: dict[Key, Curve], forward: dict[Key, Curve]) -> dict[Key, Curve]:
    """Curves of forward, and those of backward that follow from forward and both together."""
    curves = dict(forward)
    for (_, causal, dim), alone in forward.items():
        both = together[_FORWARD, causal, dim]
        rates = (
            _BACKWARD_SHARE / ((1 + _BACKWARD_SHARE) / rate - 1 / fast)
            for rate, fast in zip(both.rates, alone.rates, strict=True)
        )
        curves[_BACKWARD, causal, dim] = Curve(both.lengths, tuple(rates))
    return curves


def _scaled(curve: Curve, length: int, rate: float) -> Curve:
    """The shape of a curve, through a given rate at one length."""
    factor = rate / curve.at(length)
    return Curve(curve.lengths, tuple(each * factor for each in curve.rates))


_A100_TOGETHER = FLASH_ATTENTION_2_A100.curves
_A100_BEST = 0.73 * FLASH_ATTENTION_2_A100.peak / _A100_TOGETHER[_FORWARD, False, 128].rates[-1]

FLASH_ATTENTION_2_A100_APART = Benchmark(
    "FlashAttention-2 on A100 80GB SXM4, forward and backward apart",
    FLASH_ATTENTION_2_A100.peak,
    _apart(
        _A100_TOGETHER,
        {
            key: Curve(curve.lengths, tuple(rate * _A100_BEST for rate in curve.rates))
            for key, curve in _A100_TOGETHER.items()
            if key[0] == _FORWARD
        },
    ),
    "Dao, FlashAttention-2, arXiv:2307.08691, abstract (50 to 73 % of the peak on A100) and "
    "figure 4 (forward and backward together), as in FLASH_ATTENTION_2_A100",
    "2023-07",
    "forward has the shape of both together, scaled so that its best is 73 % of the peak; "
    "backward is what is left of both together, and is 62 % of the peak at best",
)

FLASH_ATTENTION_2_H100 = Benchmark(
    "FlashAttention-2 on H100 80GB SXM5",
    FLASH_ATTENTION_3_H100.peak,
    _apart(
        {
            (_FORWARD, False, 64): _tera(215, 254, 274, 288, 294, 296),
            (_FORWARD, True, 64): _tera(141, 192, 232, 257, 273, 284),
            (_FORWARD, False, 128): _tera(248, 294, 320, 326, 335, 338),
            (_FORWARD, True, 128): _tera(163, 221, 265, 294, 308, 328),
        },
        {
            (_FORWARD, False, 64): _tera(282, 306, 318, 321, 322, 324),
            (_FORWARD, True, 64): _tera(180, 229, 262, 284, 295, 299),
            (_FORWARD, False, 128): _tera(309, 350, 362, 368, 370, 370),
            (_FORWARD, True, 128): _tera(191, 260, 298, 319, 333, 335),
        },
    ),
    "forward: Shah et al., FlashAttention-3, arXiv:2407.08608, figure 5, as drawn in "
    "github.com/Dao-AILab/flash-attention, assets/flash3_fp16_fwd.png; both together: Dao, "
    "FlashAttention-2, arXiv:2307.08691, assets/flash2_h100_fwd_bwd_benchmark.png there",
    "2024-07",
    "backward is what is left of both together; the two figures are a year apart",
)

_FA3 = FLASH_ATTENTION_3_H100.curves
FLASH_ATTENTION_4_B200_8K = Benchmark(
    "FlashAttention-4 on B200, measured at 8,192 tokens",
    2250e12,
    {
        (kind, causal, 128): _scaled(_FA3[kind, causal, 128], 8192, rate * 1e12)
        for kind, causal, rate in (
            (_FORWARD, False, 1534.8),
            (_FORWARD, True, 1418.1),
            (_BACKWARD, False, 1359.8),
            (_BACKWARD, True, 1208.6),
        )
    },
    "github.com/Dao-AILab/flash-attention, pull request 2280: head dimension 128, 8,192 tokens, "
    "backward by two CTAs",
    "2026-02",
    "only 8,192 tokens were measured: the shape over length is that of FlashAttention-3 on H100",
)

H800_LINK = Link(
    "NVLink 4, 8 links",
    "nvlink",
    Figure(
        200e9,
        "half of the 400 GB/s both ways that are left of the H100's 900, as trade press reported "
        "(tumgag.com/tag/nvidia h100)",
        "2023-03",
    ),
    Figure(
        0.8,
        "github.com/deepseek-ai/DeepEP, docs/legacy.md: about 160 GB/s on H800, the most that "
        "NVLink reaches",
        "2025-02",
    ),
)


def _with_kernel(chip: Chip, name: str, kernel: Benchmark) -> Chip:
    return replace(chip, name=name, attention=dict.fromkeys(("bfloat16", "float16"), kernel))


_MACHINES: dict[str, tuple[Chip, Link]] = {
    "a100 FlashAttention-2": (
        _with_kernel(
            CHIPS["a100"], "A100 80GB SXM, FlashAttention-2", FLASH_ATTENTION_2_A100_APART
        ),
        LINKS["nvlink3"],
    ),
    "h800 FlashAttention-2": (
        _with_kernel(CHIPS["h100"], "H800 80GB SXM, FlashAttention-2", FLASH_ATTENTION_2_H100),
        H800_LINK,
    ),
    "b200 FlashAttention-4": (
        _with_kernel(CHIPS["b200"], "B200 180GB SXM, FlashAttention-4", FLASH_ATTENTION_4_B200_8K),
        LINKS["nvlink5"],
    ),
}


def machine_as_published(name: str, devices: int) -> Machine:
    """Find a machine of one node as a published measurement used it.

    Parameters
    ----------
    name : str
        Chip and kernel, as in ``"a100 FlashAttention-2"``.
    devices : int
        All joined directly; 1 to 8.

    Raises
    ------
    ValueError
        If there is no such machine, or a node has no such number of devices.
    """
    if name not in _MACHINES:
        raise ValueError(f"there is no {name!r}; there is {', '.join(map(repr, _MACHINES))}.")
    if not 1 <= devices <= 8:
        raise ValueError(f"a node has 1 to 8 devices; got {devices}.")
    chip, link = _MACHINES[name]
    return Machine(f"{devices}x {name}", chip, Topology(1, devices, link), NCCL)
