"""The ring whose hops run while it computes: order, as the trace tells it."""

from __future__ import annotations

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome
from ringlab.grade.exercises.lesson_00.stalls import all_wait_in
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.exercises.lesson_03.ring_mistakes import FAILED, TRAFFIC
from ringlab.grade.looks import hops, results
from ringlab.grade.numbers import close
from ringlab.grade.observation import Observation
from ringlab.grade.windows import Window, windows, work_of

SHARED = ("send_before_receive", "reads_before_wait", "gathers_everything")


def _hidden(case: Case, seen: Observation) -> Outcome:
    """Every hop of every rank is under way while a whole block is computed with."""
    for rank in range(case.world_size):
        block = work_of(seen.timeline, rank) // case.world_size
        for number, window in enumerate(windows(seen.timeline, rank), 1):
            if window.flops < block:
                share = window.flops / max(block, 1)
                return Outcome(
                    False,
                    "while a hop is under way, the compute of a whole block",
                    f"hop {number} of rank {rank}: {share:.0%} of a block between its start and "
                    "the first wait for it",
                )
    return Outcome(True, "compute during every hop", "compute during every hop")


def _found(case: Case, seen: Observation) -> list[Window] | None:
    """The hops of rank 0 of a run that is right in its numbers; None if this one cannot tell."""
    if (
        seen.failure is not None
        or case.world_size == 1
        or not close(seen.results, ring.right(case))
    ):
        return None
    return windows(seen.timeline, 0)


def _computes_first(case: Case, seen: Observation) -> bool | None:
    found = _found(case, seen)
    if not found:
        return None
    return all(w.flops == 0 for w in found) and found[0].flops_before > 0


def _waits_first(case: Case, seen: Observation) -> bool | None:
    found = _found(case, seen)
    if not found:
        return None
    return all(w.flops == 0 for w in found) and found[0].flops_before == 0


def _half(case: Case, seen: Observation) -> bool | None:
    found = _found(case, seen)
    if not found:
        return None
    return all(w.flops > 0 for w in found) and not _hidden(case, seen).passed


def _some(case: Case, seen: Observation) -> bool | None:
    found = _found(case, seen)
    if not found or len(found) < 2:
        return None
    return any(w.flops == 0 for w in found) and any(w.flops > 0 for w in found)


EXERCISE = Exercise(
    name="ring_overlap",
    lesson="03",
    title="The ring with overlap",
    minutes=20,
    difficulty=3,
    objective="order a ring so that every hop is under way while the ranks compute",
    signature="ring_overlap(q, k, v)",
    hints=(
        "A hop takes its time from the call that starts it to the wait that ends it. What does "
        "your rank do in between?",
        "In each step but the last: start the batch, compute with the block in hand, merge, then "
        "wait. The block in hand may be read while it is sent; what arrives goes into another "
        "buffer and is touched only after the wait.",
    ),
    checks=(
        Check("numbers", 2, results(ring.right)),
        Check("hops", 2, hops(ring.right_hops)),
        Check("overlap", 4, _hidden, after="hops"),
    ),
    cases=(
        ring.case("1 rank", 1, 41, tokens=4),
        ring.case("2 ranks, 3 tokens each", 2, 42, tokens=3),
        ring.case("3 ranks, 5 tokens each", 3, 43, tokens=5, heads=6),
        ring.case("4 ranks, 2 tokens each", 4, 44, tokens=2, heads=3, kv_heads=1),
    ),
    observe=ring.observe,
    mistakes=(
        Mistake(
            "receives_alone_first",
            "Every rank starts its receive alone, before its send, and on GPUs the operations of a "
            "group stand in line: the send waits behind a receive that waits for the neighbour's "
            "send. Start both together, as one batch.",
            all_wait_in("recv"),
        ),
        *(mistake for mistake in (*FAILED, *TRAFFIC) if mistake.name in SHARED),
        Mistake(
            "computes_first",
            "The hop is started after the compute and waited for at once, so nothing happens while "
            "it is under way: a step takes compute plus transfer. Start the hop first.",
            _computes_first,
        ),
        Mistake(
            "waits_first",
            "The hop is started first, and waited for before the compute. Wait for it after the "
            "compute: what you compute with is the block in hand, not the one that comes.",
            _waits_first,
        ),
        Mistake(
            "some_hops_exposed",
            "Some hops are hidden behind the compute and others are not. Every hop but none after "
            "the last step: is the first one started before the first compute?",
            _some,
        ),
        Mistake(
            "half_of_the_compute",
            "A part of each block's compute is done before its hop is started or after it has been "
            "waited for. The longer the compute between, the longer a transfer it hides: put all "
            "of it there.",
            _half,
        ),
    ),
    draw=ring.draw,
)
