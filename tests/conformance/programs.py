"""Every method of the library as a program: prefill forward and backward, and decode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ringlab import World
from tests.decode import cases as decode
from tests.prefill.cases import LAYOUTS, Attend, Inputs, forward, inputs, step
from tests.prefill.cases import METHODS as PREFILL

Program = Callable[[], Any]

LENGTH = 37


def training(method: Attend, causal: bool) -> dict[str, Program]:
    """Forward and backward, in every layout."""
    given, mask = inputs(LENGTH, dtype=torch.float32), "causal" if causal else "full"
    return {
        f"{method.__name__} {type(layout).__name__} {mask}": partial(
            step, method, given, layout, causal=causal, length=LENGTH
        )
        for layout in LAYOUTS
    }


def generate(method: str, block: int, given: decode.Sequence) -> list[Tensor]:
    """A prompt, which arrives on the rank's device, then four tokens one by one."""
    cache = decode.filled(given, layout=decode.Interleaved(block))
    token = given.k[:, :, :1], given.v[:, :, :1]
    outs = []
    for _ in range(4):
        cache.append(*token)
        outs.append(decode.decode_attention(given.q, cache, method=method))
    return outs


PROGRAMS: dict[str, Program] = {}
for _method in PREFILL:
    PROGRAMS |= training(_method, causal=False) | training(_method, causal=True)
    _short = inputs(LENGTH, dtype=torch.float32)
    PROGRAMS[f"{_method.__name__} forward only, asking for the length"] = partial(
        forward, _method, _short, LAYOUTS[1], causal=True
    )
for _name in decode.METHODS:
    for _block in (1, 4):
        PROGRAMS[f"decode {_name} in blocks of {_block}"] = partial(
            generate, _name, _block, decode.sequence(LENGTH, 1, dtype=torch.float32)
        )


def large(batch: int, length: int) -> Inputs:
    """Megabytes of K and V that take little compute: many short sequences."""
    return inputs(length, batch=batch, heads=1, kv_heads=1, head_dim=128, dtype=torch.float32)


def communication(world: World, program: Program) -> Any:
    world.run(program)
    return world.timeline.communication()
