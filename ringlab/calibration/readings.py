"""What one rank measures of its machine: kernels, memory and messages, while all ranks do so."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calls.exchange import all_gather, exchange, reduce_scatter
from ringlab.numerics import AttentionState, attend, attend_backward

HEADS = 8
LENGTHS = (128, 256, 512, 1024, 2048)
MESSAGES = (1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24)

Tile = tuple[str, str, bool, int, int]
"""Kind of work, dtype, causal, head dimension, length."""


@dataclass
class Readings:
    """Medians of seconds.

    Attributes
    ----------
    tiles : dict of Tile to float
    merge, copy : float
        For each byte read or written.
    launch : float
        A kernel with next to nothing to do.
    messages : dict of str to (dict of int to float)
        For ``"exchange"``, a message to the next rank while one comes from the rank before, and
        for collectives by their names: seconds by the bytes that a rank sends.
    """

    tiles: dict[Tile, float] = field(default_factory=dict)
    merge: float = 0.0
    copy: float = 0.0
    launch: float = 0.0
    messages: dict[str, dict[int, float]] = field(default_factory=dict)


def take(dtypes: Sequence[str], head_dims: Sequence[int], rounds: int) -> Readings:
    """Measure on this rank; all ranks of the world must call it alike."""
    found = Readings()
    for dtype in dtypes:
        for head_dim in head_dims:
            for length in LENGTHS:
                _tiles(found, dtype, head_dim, length, rounds)
    _memory(found, max(head_dims), rounds)
    if dist.get_world_size() > 1:
        for name, prepare in _MESSAGES.items():
            found.messages[name] = {size: _median(prepare(size), rounds) for size in MESSAGES}
    return found


def _tiles(found: Readings, dtype: str, head_dim: int, length: int, rounds: int) -> None:
    shape = (1, HEADS, length, head_dim)
    kind = getattr(torch, dtype)
    q, k, v, dout = (torch.randn(shape).to(kind) for _ in range(4))
    for causal in (False, True):
        state = attend(q, k, v, causal=causal)
        out = state.out.to(kind)

        def forward(causal: bool = causal) -> object:
            return attend(q, k, v, causal=causal)

        def backward(causal: bool = causal, out: Tensor = out, lse: Tensor = state.lse) -> object:
            return attend_backward(dout, q, k, v, out, lse, causal=causal)

        found.tiles["attention", dtype, causal, head_dim, length] = _median(forward, rounds)
        found.tiles["attention backward", dtype, causal, head_dim, length] = _median(
            backward, rounds
        )


def _memory(found: Readings, head_dim: int, rounds: int) -> None:
    """Merge two states of 4 MB and more, copy and add as much, and do it with nothing."""
    state, other = (_state(1024, head_dim) for _ in range(2))
    touched = 3 * (state.out.nbytes + state.lse.nbytes)
    found.merge = _median(lambda: state.merge_(other), rounds) / touched
    a, b = torch.randn(2, HEADS, 2048, head_dim)
    both = _median(lambda: a.copy_(b).add_(b), rounds)
    found.copy = both / (5 * a.nbytes)
    tiny, less = (_state(1, 1) for _ in range(2))
    found.launch = _median(lambda: tiny.merge_(less), 10 * rounds) / 7


def _state(length: int, head_dim: int) -> AttentionState:
    x = torch.randn(1, HEADS, length, head_dim)
    return attend(x, x, x)


def _exchange(size: int) -> Callable[[], object]:
    """A hop of a ring."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    give, take = (torch.zeros(size, dtype=torch.uint8) for _ in range(2))
    group = dist.group.WORLD
    assert group is not None

    def hop() -> None:
        sends, receives = [(give, (rank + 1) % world_size)], [(take, (rank - 1) % world_size)]
        for handle in exchange(sends, receives, group):
            handle.wait()

    return hop


def _gather(size: int) -> Callable[[], object]:
    """An all-gather in which each rank sends about `size` bytes."""
    own, every, group = _chunks(size)
    return lambda: all_gather(every, own, group)


def _scatter(size: int) -> Callable[[], object]:
    """A reduce-scatter in which each rank sends about `size` bytes."""
    own, every, group = _chunks(size)
    return lambda: reduce_scatter(own, every, group)


def _chunks(size: int) -> tuple[Tensor, Tensor, dist.ProcessGroup]:
    """A float32 chunk of one rank, those of all, and the group; W-1 chunks make up `size`."""
    world_size, group = dist.get_world_size(), dist.group.WORLD
    assert group is not None
    own = torch.zeros(size // 4 // (world_size - 1))
    return own, torch.zeros(world_size * len(own)), group


_MESSAGES: dict[str, Callable[[int], Callable[[], object]]] = {
    "exchange": _exchange,
    "all_gather": _gather,
    "reduce_scatter": _scatter,
}


def _median(call: Callable[[], object], rounds: int) -> float:
    """Median seconds of a call that all ranks begin together, after two to warm up."""
    seconds = []
    for number in range(rounds + 2):
        dist.barrier()
        began = time.perf_counter()
        call()
        if number > 1:
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
