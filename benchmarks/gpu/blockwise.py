"""One sequence on one device, its keys in N blocks one after the other, against a single call.

This is what a rank of a ring of N computes, without messages: what tiles and merging cost.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.gpu.clock import reading
from benchmarks.gpu.place import Place
from benchmarks.gpu.scale import Scale
from benchmarks.peers.problem import Problem
from ringlab.bench.readings import interleave
from ringlab.numerics import AttentionState, attend, attend_backward

FORWARD, BOTH = "forward", "forward and backward"


def run(place: Place, scale: Scale) -> list[dict[str, Any]]:
    """Time every number of blocks in turns with SDPA; a ratio of 1 is parity, more is faster."""
    given = Problem(
        scale.tokens, scale.heads, scale.kv_heads, scale.dim, scale.dtype, causal=False
    ).tensors()
    q, k, v, dout = (x.to(place.device) for x in given)

    def read(step: Callable[[], object]) -> dict[str, Any]:
        return {"": reading(step, place.device, scale.steps)}

    rows = []
    for phase, single, in_blocks in ((FORWARD, _sdpa, forward), (BOTH, _sdpa_both, both)):
        contestants = {"single": lambda single=single: read(lambda: single(q, k, v, dout))}
        for blocks in scale.blocks:
            contestants[str(blocks)] = lambda blocks=blocks, in_blocks=in_blocks: read(
                lambda: in_blocks(q, k, v, dout, blocks)
            )
        times = {
            name: statistics.median(one[""].wall for one in readings)
            for name, readings in interleave(contestants, scale.rounds).items()
        }
        alone = times.pop("single")
        rows += [
            {"phase": phase, "blocks": int(name), "s": time, "single_s": alone,
             "ratio": alone / time}
            for name, time in times.items()
        ]  # fmt: skip
    return rows


def forward(q: Tensor, k: Tensor, v: Tensor, dout: Tensor, blocks: int) -> AttentionState:
    """Attend to one block after the other, and merge each into what there is."""
    pairs = zip(k.chunk(blocks, dim=2), v.chunk(blocks, dim=2), strict=True)
    states = (attend(q, keys, values) for keys, values in pairs)
    state = next(states)
    for other in states:
        state.merge_(other)
    return state


def both(q: Tensor, k: Tensor, v: Tensor, dout: Tensor, blocks: int) -> tuple[Tensor, ...]:
    """Add the gradients of the blocks: dQ of all of them, dK and dV side by side."""
    done = forward(q, k, v, dout, blocks)
    pairs = zip(k.chunk(blocks, dim=2), v.chunk(blocks, dim=2), strict=True)
    shares = [attend_backward(dout, q, *pair, done.out, done.lse) for pair in pairs]
    dq = shares[0][0].to(done.out.dtype)
    for share in shares[1:]:
        dq += share[0]
    return dq, torch.cat([x[1] for x in shares], dim=2), torch.cat([x[2] for x in shares], dim=2)


def _sdpa(q: Tensor, k: Tensor, v: Tensor, dout: Tensor) -> Tensor:
    with torch.no_grad():
        return scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])


def _sdpa_both(q: Tensor, k: Tensor, v: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
    own = [x.detach().requires_grad_() for x in (q, k, v)]
    out = scaled_dot_product_attention(*own, enable_gqa=q.shape[1] != k.shape[1])
    return torch.autograd.grad(out, own, dout)
