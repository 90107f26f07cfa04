"""How much of the time in which messages travel is hidden under attention, by the profiler.

On GPUs these are the kernels of NCCL and of attention; the first run as long as one rank waits
for another, too. On a CPU they are gloo's sends and receives, and ringlab's attention.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.clock import finish
from benchmarks.gpu.intervals import Interval, common, length
from benchmarks.gpu.ring import inputs
from benchmarks.gpu.scale import Scale
from ringlab import World, ZigZag, ring_attention

MESSAGES = {"cuda": ("nccl",), "cpu": ("gloo:",)}
"""How the names of what communicates begin, without regard to case."""
ATTENTION = {"cpu": ("ringlab::attend",)}
"""And of what computes attention; on a GPU it is every kernel that does not communicate."""
NO_KERNEL = ("memcpy", "memset")


def run(world: World, device: str, scale: Scale) -> list[dict[str, Any]]:
    """Profile a causal zig-zag ring, forward, on every rank, in several rounds.

    Returns
    -------
    list of dict
        For each rank the medians of seconds of messages and of attention, and of the share of
        the first that lies under the second; None where no message was seen.
    """
    rounds = [world.run(rank_profiles, device, scale) for _ in range(scale.rounds)]
    return [
        {"rank": rank, **_medians([hidden(*one) for one in of_rank])}
        for rank, of_rank in enumerate(zip(*rounds, strict=True))
    ]


def _medians(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = {name: [row[name] for row in rows if row[name] is not None] for name in rows[0]}
    return {name: statistics.median(values) if values else None for name, values in found.items()}


def hidden(messages: list[Interval], attention: list[Interval]) -> dict[str, Any]:
    """Compare two sets of intervals, in microseconds."""
    travelling = length(messages)
    share = common(messages, attention) / travelling if travelling else None
    return {
        "messages_s": travelling / 1e6, "attention_s": length(attention) / 1e6, "hidden": share,
    }  # fmt: skip


def rank_profiles(device: str, scale: Scale) -> tuple[list[Interval], list[Interval]]:
    """Profile one rank: when messages travelled, and when attention was computed."""
    q, k, v, _ = inputs(scale.tokens, device, scale)
    length = scale.tokens * dist.get_world_size()

    def step() -> None:
        with torch.no_grad():
            ring_attention(q, k, v, layout=ZigZag(), causal=True, length=length)

    step()
    finish(device)
    dist.barrier()
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as found:
        step()
        finish(device)
    on_gpu = device == "cuda"
    return sorted_out(
        (
            (event.name, event.time_range.start, event.time_range.end)
            for event in found.events() or []
            if (event.device_type == torch.autograd.DeviceType.CUDA) == on_gpu
            and not (on_gpu and event.is_user_annotation)  # a range around kernels, with gaps
        ),
        device,
    )


def sorted_out(
    events: Iterable[tuple[str, float, float]], device: str
) -> tuple[list[Interval], list[Interval]]:
    """Tell messages and attention from events (name, start, end) of the device by their names."""
    messages: list[Interval] = []
    attention: list[Interval] = []
    for name, start, end in events:
        name = name.lower()
        if name.startswith(MESSAGES[device]):
            messages.append((start, end))
        elif name.startswith(ATTENTION.get(device, ("",))) and not name.startswith(NO_KERNEL):
            attention.append((start, end))
    return messages, attention
