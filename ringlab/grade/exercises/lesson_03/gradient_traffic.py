"""Mistakes in what the backward of a ring sends and keeps, and in how its runs end."""

from __future__ import annotations

from ringlab.grade.case import Case
from ringlab.grade.exercise import Mistake
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.exercises.lesson_03.backward import (
    gradient_bytes,
    memory,
    most_sent,
    right,
    sent,
)
from ringlab.grade.exercises.lesson_03.ring_mistakes import FAILED as OF_RINGS
from ringlab.grade.observation import Observation
from ringlab.grade.shows import collects, fails, right_but, turns_back

SHARED = ("send_before_receive", "reads_before_wait", "forgets_one_rank")


def _sent_wide(case: Case, seen: Observation) -> bool | None:
    return case.text("dtype", "float32") == "bfloat16" and sent(case, seen) > most_sent(case)


def _sent_expanded(case: Case, seen: Observation) -> bool | None:
    q, k, _ = ring.inputs(case)
    return q.shape[1] > k.shape[1] and sent(case, seen) > most_sent(case)


def _block_goes_home(case: Case, seen: Observation) -> bool | None:
    size = case.world_size
    return sent(case, seen) == size * (ring.block_bytes(case) + gradient_bytes(case))


def _straight_home(case: Case, seen: Observation) -> bool | None:
    size = case.world_size
    return None if size < 3 else len(seen.timeline.edges()) == size * (size - 1)


FAILED = (
    Mistake(
        "adds_to_what_is_sent",
        "You add to dK and dV while they are being sent. What a step adds must be in them before "
        "their hop begins: let them follow their block one step behind.",
        fails("BufferHazard", words=" writes a buffer that a send in flight reads"),
    ),
    *(mistake for mistake in OF_RINGS if mistake.name in SHARED),
)
"""Mistakes that end a run."""

TRAFFIC = (
    Mistake(
        "gathers_everything",
        "The gradients are right, but K and V are collected, or dK and dV summed, in a collective: "
        "every rank then holds as much as the whole sequence. Let a block and the sums for it go "
        "round from rank to rank.",
        collects,
    ),
    Mistake(
        "kv_sent_in_float32",
        "The gradients are right, and K and V travel in float32 although they came in 16 bits: "
        "twice the bytes. Send them as they are, and widen them where they are used. Only dK and "
        "dV, which are added up on the way, need float32.",
        right_but(right, _sent_wide),
    ),
    Mistake(
        "kv_heads_sent_expanded",
        "The gradients are right, but what travels has a head for every query head. Send KV heads: "
        "repeat K and V where they have arrived, and sum over the query heads that share a KV head "
        "before dK and dV go on.",
        right_but(right, _sent_expanded),
    ),
    Mistake(
        "kv_goes_home_too",
        "The gradients are right, and K and V make the last hop as well, the one that brings dK "
        "and dV home. Nobody needs them there: their owner has them still.",
        right_but(right, _block_goes_home),
    ),
    Mistake(
        "straight_home",
        "Every rank sends its share of dK and dV straight to the owner of the block. In a ring a "
        "rank talks to its two neighbours alone: let one sum travel behind its block, to which "
        "every rank adds.",
        right_but(right, _straight_home),
    ),
    Mistake(
        "wrong_direction",
        "The gradients are right, and your ring turns the other way. Send to the next rank, "
        "receive from the one before; the block of step t is then that of rank (rank - t) % W.",
        right_but(right, turns_back),
    ),
    Mistake(
        "keeps_every_block",
        "Gradients and bytes are right, but all blocks that come are kept. Then a rank holds as "
        "much as the whole sequence. Compute with a block, pass on what belongs to it, and let it "
        "go.",
        right_but(right, lambda case, seen: not memory(case, seen).passed),
    ),
)
"""Mistakes in what is sent and kept."""
