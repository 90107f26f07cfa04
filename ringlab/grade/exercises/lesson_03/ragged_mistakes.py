"""Mistakes in rings over shards of different lengths, and how they show."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch

from ringlab.grade.case import Case
from ringlab.grade.exercise import Mistake, Shows
from ringlab.grade.exercises.lesson_03 import ragged, ring, wrong_rings
from ringlab.grade.exercises.lesson_03.parts import Part, part_of
from ringlab.grade.exercises.lesson_03.ragged import Tokens, made, token_bytes
from ringlab.grade.exercises.lesson_03.ring_mistakes import (
    FAILED,
    breaks_without_tokens,
)
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain
from ringlab.grade.shows import Results, any_of, collects, gives, right_but, where

SHARED = ("send_before_receive",)


def _received(case: Case, seen: Observation, rank: int) -> list[int]:
    """Tokens for which a rank made room, launch by launch."""
    sizes: dict[int, int] = {}
    for event in seen.timeline.of(rank, "recv"):
        sizes[event.launch] = sizes.get(event.launch, 0) + event.bytes_in
    return [size // token_bytes(case) for size in sizes.values()]


def _makes_room(tokens: Tokens) -> Shows:
    """Shows if a run ends because the rooms for what arrives were of these lengths.

    Where a rank has no token, some of its hops are not made, and nothing can be told.
    """

    def shows(case: Case, seen: Observation) -> bool | None:
        held = ring.lengths(case)
        if seen.failure is not None and 0 in held:
            return None
        if seen.failure is None or seen.failure.kind != "MessageMismatch":
            return False
        rooms = [_received(case, seen, rank) for rank in range(case.world_size)]

        def fit(rule: Tokens) -> bool:
            return all(
                length == rule(held, rank, step)
                for rank, own in enumerate(rooms)
                for step, length in enumerate(own, 1)
            )

        return fit(tokens) and not fit(ragged.sent)

    return shows


def _only_where_a_rank_is_empty(case: Case, seen: Observation) -> bool | None:
    """Somebody leaves while others still wait, and only where a rank has no token."""
    if 0 not in ring.lengths(case):
        return False
    ends = ("PeerLeft", "Deadlock", "UnmatchedOperation")
    return seen.failure is not None and seen.failure.kind in ends


def _padded(case: Case, seen: Observation) -> bool:
    """W - 1 hops from each rank, all as long as the longest block."""
    hop = token_bytes(case) * max(ring.lengths(case))
    return all(made(seen, r) == (hop,) * (case.world_size - 1) for r in range(case.world_size))


def _tells_lengths(case: Case, seen: Observation) -> bool:
    """Whole numbers travel beside the blocks."""
    return any(event.kind == "send" and "int" in event.dtype for event in seen.timeline)


def _held(cut: Callable[[int, list[int]], int], *, own: bool) -> Results:
    """Blocks brought to another length; the own one too, or not. Beyond its end there are zeros.

    Parameters
    ----------
    cut : callable
        ``cut(length, lengths)``: the length that a block gets.
    own : bool
        Whether the rank's own block gets it as well.
    """

    @lru_cache(maxsize=512)
    def part(case: Case, rank: int, owner: int) -> Part:
        q, k, v = ring.shards(case)[rank][0], *ring.shards(case)[owner][1:]
        length = cut(k.shape[2], ring.lengths(case))
        if rank != owner or own:
            k, v = (torch.nn.functional.pad(x, (0, 0, 0, length - x.shape[2])) for x in (k, v))
        return part_of(q, k, v)

    def results(case: Case) -> tuple[Plain, ...]:
        ranks, kind = range(case.world_size), ring.inputs(case).q.dtype
        return tuple(
            wrong_rings.merged([part(case, rank, owner) for owner in ranks]).to(kind)
            for rank in ranks
        )

    return results


def _to(cut: Callable[[int, list[int]], int]) -> Shows:
    both = (gives(_held(cut, own=own), ring.right) for own in (True, False))
    return any_of(*both)


def _all_have_tokens(case: Case, _seen: Observation) -> bool:
    return 0 not in ring.lengths(case)


MISTAKES = (
    Mistake(
        "room_as_long_as_what_is_sent",
        "What arrives is received into a tensor as long as the one that is sent. They are blocks "
        "of two ranks, of two lengths: make room for the block that comes.",
        any_of(
            _makes_room(lambda held, rank, step: held[rank]),
            _makes_room(lambda held, rank, step: ragged.sent(held, rank, step - 1)),
        ),
    ),
    Mistake(
        "room_for_the_neighbours_own",
        "You make room for the block that the rank before *owns*. That fits the first hop; later "
        "it passes on blocks of other ranks. Whose block comes in this hop?",
        _makes_room(lambda held, rank, step: held[rank - 1]),
    ),
    Mistake(
        "lengths_the_other_way",
        "You look up the lengths the other way round the ring. Blocks come from the rank before, "
        "so in step t it is the block of rank (rank - t) % W.",
        _makes_room(lambda held, rank, step: held[(rank + step) % len(held)]),
    ),
    Mistake(
        "leaves_without_tokens",
        "A rank without tokens leaves at once, or takes no part in the hops. It has nothing to "
        "compute, but all blocks of the ranks before must pass through it to those behind.",
        _only_where_a_rank_is_empty,
    ),
    Mistake(
        "empty_block_breaks_it",
        "A block without tokens breaks it: there is no maximum of nothing, and 0 / 0 is no number. "
        "Such a block changes nothing: leave it out, or let it count for nothing.",
        breaks_without_tokens,
    ),
    *(mistake for mistake in FAILED if mistake.name in SHARED),
    Mistake(
        "gathers_everything",
        "The numbers are right, but blocks, or their lengths, are collected in a collective. "
        "The lengths are given, and blocks go from rank to rank, one at a time.",
        collects,
    ),
    Mistake(
        "tells_the_lengths",
        "The numbers are right, and each hop is announced by a message with its length. That is "
        "another launch, and a wait before the room can be made. Every rank has all lengths, and "
        "knows whose block comes.",
        right_but(ring.right, _tells_lengths),
    ),
    Mistake(
        "pads_to_the_longest",
        "The numbers are right, and all blocks are padded to the longest one before they travel. "
        "Send what there is: both ends know how long it is.",
        right_but(ring.right, _padded),
    ),
    Mistake(
        "padding_is_attended_to",
        "Blocks are padded with zeros, and the zeros take part: a key of zeros has the score 0, "
        "not minus infinity, and takes a share of the weights.",
        _to(lambda length, held: max(held)),
    ),
    Mistake(
        "cut_to_the_shortest",
        "Blocks are cut to the length of the shortest one, so the last keys of the longer ones are "
        "never seen.",
        where(_all_have_tokens, _to(lambda length, held: min(held))),
    ),
    Mistake(
        "weighted_by_length",
        "Each block counts in proportion to its number of tokens. A block whose keys fit the query "
        "counts for more than a longer one whose keys do not: weights come from the LSEs.",
        where(_all_have_tokens, gives(wrong_rings.each_rank(wrong_rings.by_keys), ring.right)),
    ),
)
