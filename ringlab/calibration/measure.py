"""The own machine as a `Machine`: rates, bandwidth, latency, measured on a small gloo world."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from ringlab.calibration.fit import line
from ringlab.calibration.readings import HEADS, Readings, take
from ringlab.host import cores, memory
from ringlab.machine.benchmarks import Benchmark, Curve, Key
from ringlab.machine.chips import Chip
from ringlab.machine.figures import Figure
from ringlab.machine.links import Link
from ringlab.machine.machine import Machine
from ringlab.machine.topology import Topology
from ringlab.machine.transport import Protocol, Transport
from ringlab.numerics.tile import causal_pairs
from ringlab.world import World

_HOW = "measured on this machine, all ranks at once"
_ONE = Figure(1.0, "the rates are what kernels reached, not a peak", "")
_PRODUCTS = {"attention": 2, "attention backward": 5}


def measure(
    ranks: int = 2,
    threads: int = 1,
    *,
    dtypes: Sequence[str] = ("float32", "bfloat16"),
    head_dims: Sequence[int] = (64, 128),
    rounds: int = 5,
) -> Machine:
    """Measure the machine this runs on, as `ranks` processes of `threads` torch threads share it.

    Parameters
    ----------
    ranks, threads : int
        Together at most as many as the cores this process may use.
    dtypes : sequence of str
    head_dims : sequence of int
        Head dimensions of the attention tiles that are timed.
    rounds : int
        Readings of each, of which the median counts.

    Returns
    -------
    Machine
        Of `ranks` devices. Transfers keep their rank from computing: gloo needs the cores.

    Raises
    ------
    ValueError
        If there are not as many cores.
    """
    check_cores(ranks, threads)
    with World(ranks, backend="gloo", threads=threads, timeout=600.0) as world:
        readings = world.run(take, tuple(dtypes), tuple(head_dims), rounds)
    return build(readings, ranks, threads)


def check_cores(ranks: int, threads: int) -> None:
    """Refuse ranks that would share cores."""
    if min(ranks, threads) < 1 or ranks * threads > cores():
        raise ValueError(
            f"{ranks} ranks of {threads} threads need {ranks * threads} cores and this process may "
            f"use {cores()}: ranks that take turns on a core are not predictable. Ask for ranks * "
            f"threads <= {cores()}."
        )


def build(readings: Sequence[Readings], ranks: int, threads: int) -> Machine:
    """Make a machine of what the ranks read."""
    mean = _mean(readings)
    bandwidth = 1 / mean.copy
    attention = {dtype: _benchmark(dtype, mean) for dtype in sorted({k[1] for k in mean.tiles})}
    chip = Chip(
        name=f"this CPU, {threads} thread{'s' if threads > 1 else ''} a rank",
        rates={dtype: Figure(each.peak, _HOW, "") for dtype, each in attention.items()},
        memory=Figure(float(memory() or 0) / ranks, "the operating system", ""),
        bandwidth=Figure(bandwidth, f"{_HOW}: copy and add", ""),
        attention=attention,
        matmul=_ONE,
        stream=_ONE,
        merge=Figure(mean.copy / mean.merge, f"{_HOW}: merge of two states", ""),
        launch=Figure(mean.launch, f"{_HOW}: merge of next to nothing", ""),
    )
    lines = {name: line(times) for name, times in mean.messages.items()}
    latency, rate = lines.pop("exchange", (0.0, bandwidth))
    link = Link("gloo over loopback", "net", Figure(rate, f"{_HOW}: exchange", ""), _ONE)
    transport = Transport(
        "gloo", (_tcp(latency, 1.0),), (), 0, {}, 0.0, 1.0, Figure(1.0, _HOW, ""),
        {name: _tcp(start, own / rate) for name, (start, own) in lines.items()},
    )  # fmt: skip
    name = f"this machine, {ranks} x {threads}"
    return Machine(name, chip, Topology(1, ranks, link), transport)


def _tcp(latency: float, share: float) -> Protocol:
    return Protocol("TCP", 0.0, {"net": latency, "nvlink": latency, "pcie": latency}, share)


def _mean(readings: Sequence[Readings]) -> Readings:
    """What the ranks read, averaged."""
    first = readings[0]
    return Readings(
        tiles={key: statistics.mean(r.tiles[key] for r in readings) for key in first.tiles},
        merge=statistics.mean(r.merge for r in readings),
        copy=statistics.mean(r.copy for r in readings),
        launch=statistics.mean(r.launch for r in readings),
        messages={
            name: {
                size: statistics.mean(each.messages[name][size] for each in readings)
                for size in times
            }
            for name, times in first.messages.items()
        },
    )  # fmt: skip


def _benchmark(dtype: str, readings: Readings) -> Benchmark:
    """The curves of one dtype; the peak is the best rate of them."""
    points: defaultdict[Key, list[tuple[int, float]]] = defaultdict(list)
    for (kind, name, causal, head_dim, length), seconds in readings.tiles.items():
        if name == dtype:
            pairs = causal_pairs(length, length) if causal else length * length
            flops = 2 * _PRODUCTS[kind] * HEADS * head_dim * pairs
            points[kind, causal, head_dim].append((length, flops / seconds))
    curves = {}
    for key, found in points.items():
        lengths, rates = zip(*sorted(found), strict=True)
        curves[key] = Curve(lengths, rates)
    peak = max(rate for curve in curves.values() for rate in curve.rates)
    return Benchmark(f"ringlab::attend in {dtype}", peak, curves, _HOW, "")
