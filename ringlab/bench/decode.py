"""One token against a long KV cache: split-K on ranks, and SDPA in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ringlab.bench.readings import Phases, Reading, Stopwatch
from ringlab.decode import ShardedKVCache, decode_attention

PHASE = "a token"
GROUPED = "SDPA, grouped"
FORMS = (GROUPED, "SDPA, enable_gqa")
"""How query heads share KV heads: as further queries of one head, which reads K and V once, or as
SDPA itself arranges it."""
PIECE = 4096
"""Tokens that are made at a time, so that a rank never holds all of a long cache."""


@dataclass(frozen=True)
class DecodeProblem:
    """One new token attends to all tokens of one layer's cache, B = 1.

    Attributes
    ----------
    length : int
        Tokens in the cache.
    heads, kv_heads, dim : int
    dtype : torch.dtype
    """

    length: int
    heads: int
    kv_heads: int
    dim: int
    dtype: torch.dtype

    @property
    def steps(self) -> int:
        """How often a reading repeats the step, so that it takes tens of milliseconds."""
        return max(3, min(32, 2**18 // self.length))

    def query(self) -> Tensor:
        """Make the query, [1, Hq, 1, D]."""
        generator = torch.Generator().manual_seed(1)
        return torch.randn(1, self.heads, 1, self.dim, generator=generator).to(self.dtype)

    def pieces(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Make the keys and values, [1, Hkv, PIECE, D] at a time."""
        generator = torch.Generator().manual_seed(0)
        for start in range(0, self.length, PIECE):
            shape = (2, 1, self.kv_heads, min(PIECE, self.length - start), self.dim)
            keys, values = torch.randn(shape, generator=generator).to(self.dtype)
            yield keys, values


@lru_cache(maxsize=1)
def _cache(problem: DecodeProblem) -> ShardedKVCache:
    cache = ShardedKVCache(
        1, problem.kv_heads, problem.dim, capacity=problem.length, dtype=problem.dtype
    )
    for keys, values in problem.pieces():
        cache.append(keys, values)
    return cache


@lru_cache(maxsize=1)
def _whole(problem: DecodeProblem) -> Tensor:
    shape = (2, 1, problem.kv_heads, problem.length, problem.dim)
    whole = torch.empty(shape, dtype=problem.dtype)
    for index, piece in enumerate(problem.pieces()):
        rows = slice(index * PIECE, index * PIECE + piece[0].shape[2])
        whole[0, :, :, rows], whole[1, :, :, rows] = piece
    return whole


def split_k(problem: DecodeProblem) -> Phases:
    """One rank's program: decode with split-K."""
    cache, query = _cache(problem), problem.query()
    return _timed(lambda: decode_attention(query, cache), problem.steps)


def single(problem: DecodeProblem, form: str) -> Phases:
    """Run SDPA over the whole cache in one process.

    Parameters
    ----------
    problem : DecodeProblem
    form : str
        One of `FORMS`.
    """
    (keys, values), query = _whole(problem), problem.query()
    if form == GROUPED:
        query = query.view(1, problem.kv_heads, -1, problem.dim)
    return _timed(
        lambda: scaled_dot_product_attention(query, keys, values, enable_gqa=form != GROUPED),
        problem.steps,
    )


def _timed(step: Callable[[], Tensor], steps: int) -> Phases:
    """Take the mean of some steps, after one that nobody counts."""
    with torch.inference_mode():
        step()
        dist.barrier()
        with Stopwatch() as watch:
            for _ in range(steps):
                step()
    return {PHASE: Reading(watch.reading.wall / steps, watch.reading.cpu / steps)}
