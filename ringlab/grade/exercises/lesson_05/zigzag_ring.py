"""The causal ring on zig-zag shards: the same work on every rank, without masked halves."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome, Shows
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.exercises.lesson_05.deals import zigzag
from ringlab.grade.looks import hops, inputs_kept, results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain
from ringlab.grade.shows import collects, fails, gives, right_but, turns_back
from ringlab.grade.windows import work_of

NONE, CAUSAL, ALL = "none", "causal", "all"
Quarters = tuple[tuple[str, str], tuple[str, str]]
"""What is seen: early queries of early and late keys, late queries of early and late keys."""
Rule = Callable[[int, int], Quarters]
"""From rank and source."""

EARLY_KEYS: Quarters = ((ALL, NONE), (ALL, NONE))
LATE_QUERIES: Quarters = ((NONE, NONE), (ALL, ALL))
OWN: Quarters = ((CAUSAL, NONE), (ALL, CAUSAL))
EVERYTHING: Quarters = ((ALL, ALL), (ALL, ALL))
NOTHING: Quarters = ((NONE, NONE), (NONE, NONE))


def _held(case: Case) -> list[Tensor]:
    size = case.world_size
    return [torch.tensor(mine) for mine in zigzag(size, size * case.integer("tokens"))]


@lru_cache(maxsize=64)
def _shards(case: Case) -> list[tuple[Tensor, ...]]:
    return [tuple(x[:, :, mine] for x in ring.inputs(case)) for mine in _held(case)]


def _observe(answer: Any, case: Case) -> Observation:
    return on_ranks(answer, _shards(case))


def _attention(case: Case, allowed: Tensor) -> tuple[Plain, ...]:
    out = exact_attention(*ring.inputs(case), allowed=allowed).out.float()
    return tuple(out[:, :, mine] for mine in _held(case))


@lru_cache(maxsize=64)
def _right(case: Case) -> tuple[Plain, ...]:
    length = case.world_size * case.integer("tokens")
    return _attention(case, torch.ones(length, length, dtype=torch.bool).tril())


def _is(rule: Rule, own: Quarters = OWN) -> Shows:
    """Shows if ranks see of one another what the rule says, and of their own block `own`."""

    def wrong(case: Case) -> tuple[Plain, ...]:
        held, half = _held(case), case.integer("tokens") // 2
        length = case.world_size * case.integer("tokens")
        allowed = torch.zeros(length, length, dtype=torch.bool)
        for rank, queries in enumerate(held):
            for source, keys in enumerate(held):
                quarters = own if rank == source else rule(rank, source)
                for row, entries in zip(queries.split(half), quarters, strict=True):
                    for column, seen in zip(keys.split(half), entries, strict=True):
                        causal = column <= row[:, None]
                        tile = causal if seen == CAUSAL else torch.full_like(causal, seen == ALL)
                        allowed[row[:, None], column] = tile
        return _attention(case, allowed)

    return gives(wrong, _right)


def _rule(rank: int, source: int) -> Quarters:
    return EARLY_KEYS if source < rank else LATE_QUERIES


def _pairs(case: Case, seen: Observation) -> list[int]:
    """Pairs of a query and a key in the matrix products of each rank."""
    q = _shards(case)[0][0]
    cost = 4 * q[:, :, 0].numel()
    return [work_of(seen.timeline, rank) // cost for rank in range(case.world_size)]


def _most(case: Case) -> int:
    """The own block whole, and half of each other block."""
    tokens = case.integer("tokens")
    return tokens**2 + (case.world_size - 1) * tokens**2 // 2


def _work(case: Case, seen: Observation) -> Outcome:
    pairs, most = _pairs(case, seen), _most(case)
    return Outcome(
        max(pairs) <= most,
        f"products over at most {most} pairs of a query and a key on every rank",
        f"{max(pairs)} pairs on rank {pairs.index(max(pairs))}",
    )


EXERCISE = Exercise(
    name="zigzag_ring",
    lesson="05",
    title="The zig-zag ring",
    minutes=30,
    difficulty=4,
    objective="write a causal ring in which every rank computes as much as every other",
    signature="zigzag_ring(q, k, v)",
    hints=(
        "Write down for 3 ranks which pieces each rank has. Of a block that comes from an earlier "
        "rank, which half of the keys can be seen, and by which queries? And from a later rank?",
        "From an earlier rank: all queries, the early half of the keys. From a later one: the late "
        "half of the queries, all keys. Neither needs a mask; the own block is causal as it "
        "stands. A part for the late queries alone is merged into the late half of out and LSE.",
    ),
    checks=(
        Check("numbers", 4, results(_right)),
        Check("arguments", 1, inputs_kept, after="numbers"),
        Check("work", 3, _work, after="numbers"),
        Check("hops", 1, hops(ring.right_hops), after="numbers"),
        Check("neighbours", 1, ring.to_the_next, after="hops"),
    ),
    cases=(
        ring.case("1 rank, 6 tokens", 1, 91, tokens=6),
        ring.case("2 ranks, 4 tokens each, large scores", 2, 92, tokens=4, large=60),
        ring.case("3 ranks, 6 tokens each", 3, 93, tokens=6, heads=6),
        ring.case("4 ranks, 2 tokens each", 4, 94, tokens=2, heads=3, kv_heads=1),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "gathers_everything",
            "The numbers are right, but the blocks of all ranks are collected in a collective. "
            "Pass one at a time to the next rank.",
            right_but(_right, collects),
        ),
        Mistake(
            "wrong_direction",
            "The numbers are right, and your ring turns the other way. Send to the next rank, "
            "receive from the one before; the source of step t is then (rank - t) % W.",
            right_but(_right, turns_back),
        ),
        Mistake(
            "masks_whole_blocks",
            "The numbers are right, but whole blocks are computed and half of each is masked away. "
            "What zig-zag is for is that this half can be left out: it is a half of the keys, or "
            "of the queries.",
            right_but(_right, lambda case, seen: not _work(case, seen).passed),
        ),
        Mistake(
            "own_block_unmasked",
            "Within its own block a rank lets every query see every key. A shard is in ascending "
            "order, so there it needs the ordinary causal mask.",
            _is(_rule, EVERYTHING),
        ),
        Mistake(
            "own_block_only",
            "Every rank computes with its own keys alone. Late queries need keys of all ranks.",
            _is(lambda rank, source: NOTHING),
        ),
        Mistake(
            "rule_of_contiguous",
            "You compute with whole blocks of earlier ranks and skip those of later ones. That is "
            "the rule of contiguous tokens; here a later rank has tokens between your two pieces.",
            _is(lambda rank, source: EVERYTHING if source < rank else NOTHING),
        ),
        Mistake(
            "later_ranks_skipped",
            "Blocks of later ranks are skipped. All of their keys stand between your early and "
            "your late piece, so your late queries see them.",
            _is(lambda rank, source: EARLY_KEYS if source < rank else NOTHING),
        ),
        Mistake(
            "whole_block_of_earlier_ranks",
            "Of an earlier rank your queries see the late keys too. These stand behind both of "
            "your pieces: the future.",
            _is(lambda rank, source: EVERYTHING if source < rank else LATE_QUERIES),
        ),
        Mistake(
            "early_queries_see_later_ranks",
            "All of your queries see the keys of later ranks. These stand behind your early piece: "
            "only your late queries may see them.",
            _is(lambda rank, source: EARLY_KEYS if source < rank else EVERYTHING),
        ),
        Mistake(
            "rules_exchanged",
            "The two rules have changed places: late queries and all keys is the rule for a later "
            "rank's block, all queries and early keys that for an earlier one's.",
            _is(lambda rank, source: LATE_QUERIES if source < rank else EARLY_KEYS),
        ),
        Mistake(
            "earlier_rule_for_all",
            "You use the rule of earlier ranks for later ones too. So late queries miss the late "
            "keys of later ranks, and early queries see early keys of the future.",
            _is(lambda rank, source: EARLY_KEYS),
        ),
        Mistake(
            "later_rule_for_all",
            "You use the rule of later ranks for earlier ones too. So early queries miss the early "
            "keys of earlier ranks, and late queries see late keys of the future.",
            _is(lambda rank, source: LATE_QUERIES),
        ),
        Mistake(
            "part_for_half_merged_into_all",
            "A part for the late queries alone has half as many rows as the result, and cannot be "
            "merged into all of it: merge it into the late half of out and LSE.",
            fails("RuntimeError", words="must match the size"),
        ),
    ),
    draw=ring.draw,
)
