"""What the ring exercises share: shards as inputs, the right results, the right traffic."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ringlab.draw import Picture, draw_ring_strip, draw_traffic
from ringlab.grade.case import Case
from ringlab.grade.exercise import Outcome
from ringlab.grade.looks import Hops, kv_blocks, peak_memory
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import DTYPES, Plain

MOST_BLOCKS = 3
"""Blocks of K and V that a ring needs: the rank's own, the one in hand, the one that comes."""


class Inputs(NamedTuple):
    """The whole sequence: q [B, Hq, L, D], k and v [B, Hkv, L, D]."""

    q: Tensor
    k: Tensor
    v: Tensor


def lengths(case: Case) -> list[int]:
    """Tokens of each rank: the option ``lengths``, as in ``"3 0 5"``, else ``tokens`` on each."""
    words = case.text("lengths", "").split()
    return [int(word) for word in words] or [case.integer("tokens")] * case.world_size


@lru_cache(maxsize=64)
def inputs(case: Case) -> Inputs:
    """Draw the inputs of a case: normal numbers, no two sizes equal, from the case's seed.

    The options are those of `lengths`, ``heads``, ``kv_heads``, ``head_dim``, ``batch``,
    ``dtype``, and ``large``, by which queries are multiplied.
    """
    draw = torch.Generator().manual_seed(case.seed)
    batch, dim = case.integer("batch", 2), case.integer("head_dim", 8)
    length = sum(lengths(case))
    heads, kv_heads = case.integer("heads", 4), case.integer("kv_heads", 2)
    kind = DTYPES[case.text("dtype", "float32")]
    q = torch.randn(batch, heads, length, dim, generator=draw) * case.integer("large", 1)
    k, v = torch.randn(2, batch, kv_heads, length, dim, generator=draw)
    return Inputs(q.to(kind), k.to(kind), v.to(kind))


@lru_cache(maxsize=64)
def shards(case: Case) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The q, k and v of each rank: parts of neighbouring tokens."""
    q, k, v = (x.split(lengths(case), dim=2) for x in inputs(case))
    return list(zip(q, k, v, strict=True))


@lru_cache(maxsize=64)
def right(case: Case) -> tuple[Plain, ...]:
    """What each rank must return: attention of its queries to all keys, in their dtype."""
    whole = inputs(case)
    out = exact_attention(*whole).out.to(whole.q.dtype)
    return tuple(out.split(lengths(case), dim=2))


def block_bytes(case: Case) -> int:
    """Bytes of the K and V of one rank, where all have as many tokens."""
    _, k, v = shards(case)[0]
    return k.nbytes + v.nbytes


def right_hops(case: Case) -> Hops:
    """W - 1 hops of one block from each rank."""
    return [(block_bytes(case),) * (case.world_size - 1)] * case.world_size


def observe(answer: Any, case: Case) -> Observation:
    """Call ``answer(q, k, v)`` on every rank with its shards."""
    return on_ranks(answer, shards(case))


def to_the_next(case: Case, seen: Observation) -> Outcome:
    """Every message goes to the next rank."""
    size = case.world_size
    wanted = {(rank, (rank + 1) % size) for rank in range(size)} if size > 1 else set()
    got = set(seen.timeline.edges())
    strays = ", ".join(f"{a} to {b}" for a, b in sorted(got - wanted))
    return Outcome(
        got == wanted,
        "messages from each rank to the next" if wanted else "no message",
        f"messages from rank {strays}" if strays else f"{len(got)} of {len(wanted)} pairs of ranks",
    )


def memory(case: Case, seen: Observation) -> Outcome:
    """Three blocks of K and V, as messages and, where the case asks for it, as tensors alive."""
    blocks = kv_blocks(MOST_BLOCKS, block_bytes)(case, seen)
    if not blocks.passed or not case.integer("memory", 0):
        return blocks
    return peak_memory(most_bytes)(case, seen)


def most_bytes(case: Case) -> int:
    """Five blocks, and room for scores and partial outputs of one block."""
    q, _, _ = shards(case)[0]
    scores = q.nbytes // q.shape[3] * q.shape[2]
    return 5 * block_bytes(case) + 4 * (q.nbytes + scores)


def groups(case: Case) -> list[list[int]]:
    """The option ``groups``, as in ``"0 2|1 3"``: ranks in ascending order; one may be in none."""
    return [[int(rank) for rank in part.split()] for part in case.text("groups", "").split("|")]


def draw(seen: Observation) -> Picture | None:
    """The learner's own traffic: as a ring, or as a matrix if it is none."""
    if not any(event.bytes_out for event in seen.timeline):
        return None
    if seen.timeline.count("collective") == 0:
        return draw_ring_strip(seen.timeline)
    return draw_traffic(seen.timeline)


def case(title: str, world_size: int, seed: int, **options: int | str) -> Case:
    """A case of this family."""
    return Case(title, world_size, seed, options)


CASES = (
    case("1 rank", 1, 31, tokens=5),
    case("2 ranks, 3 tokens each", 2, 32, tokens=3),
    case("3 ranks, 5 tokens each, large scores", 3, 33, tokens=5, large=60),
    case(
        "4 ranks, 3 tokens each, bfloat16", 4, 34, tokens=3, heads=3, kv_heads=1, dtype="bfloat16"
    ),
    case("5 ranks, 2 tokens each, large heads", 5, 35, tokens=2, kv_heads=4, head_dim=32, memory=1),
)
