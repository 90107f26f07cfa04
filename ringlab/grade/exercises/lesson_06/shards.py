"""A query on every rank, keys and values in shards of any length, and what each rank finds."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercises.lesson_03.parts import Part, part_of
from ringlab.grade.exercises.lesson_03.ring import lengths
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain

Shard = tuple[Tensor, Tensor, Tensor]


@lru_cache(maxsize=64)
def shards(case: Case) -> list[Shard]:
    """The q, k and v of each rank: q [B, Hq, 1, D] is the same on all of them."""
    draw = torch.Generator().manual_seed(case.seed)
    batch, dim = case.integer("batch", 2), case.integer("head_dim", 8)
    heads, kv_heads = case.integer("heads", 4), case.integer("kv_heads", 2)
    q = torch.randn(batch, heads, 1, dim, generator=draw) * case.integer("large", 1)
    k, v = torch.randn(2, batch, kv_heads, sum(lengths(case)), dim, generator=draw)
    pairs = zip(k.split(lengths(case), dim=2), v.split(lengths(case), dim=2), strict=True)
    return [(q, keys, values) for keys, values in pairs]


def whole(case: Case) -> Shard:
    """The query, and the keys and values of all ranks."""
    each = shards(case)
    return each[0][0], torch.cat([k for _, k, _ in each], 2), torch.cat([v for *_, v in each], 2)


@lru_cache(maxsize=64)
def right(case: Case) -> tuple[Plain, ...]:
    """Attention to the keys of all ranks, on every rank."""
    q, k, v = whole(case)
    return (exact_attention(q, k, v).out.to(q.dtype),) * case.world_size


@lru_cache(maxsize=64)
def parts(case: Case) -> tuple[Part, ...]:
    """What each rank finds."""
    return tuple(part_of(*shard) for shard in shards(case))


def result_bytes(case: Case) -> int:
    """Bytes of a result of one rank: D + 2 numbers of four bytes for each query head."""
    q = shards(case)[0][0]
    return q[..., 0].numel() * (q.shape[-1] + 2) * 4


def observe(answer: Any, case: Case) -> Observation:
    """Call ``answer(q, k, v)`` on every rank with the query and its shard."""
    return on_ranks(answer, shards(case))
