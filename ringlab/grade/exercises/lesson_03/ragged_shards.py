"""The ring over shards of any length: each hop has the size of the block that travels."""

from __future__ import annotations

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise
from ringlab.grade.exercises.lesson_00 import messages
from ringlab.grade.exercises.lesson_03 import ragged, ring
from ringlab.grade.exercises.lesson_03.ragged_mistakes import MISTAKES
from ringlab.grade.looks import inputs_kept, results


def _case(title: str, held: str, seed: int, **options: int) -> Case:
    return Case(title, len(held.split()), seed, {"lengths": held, **options})


EXERCISE = Exercise(
    name="ragged_shards",
    lesson="03",
    title="Shards of any length",
    minutes=25,
    difficulty=3,
    objective="write a ring for any number of tokens on each rank, none included, without padding",
    signature="ragged_shards(q, k, v, lengths)",
    hints=(
        "In which step does rank r have the block of which rank in hand? From that follows how "
        "long the next one is, before it comes. And what must a rank do that has no query?",
        "Room for what comes in step t: lengths[(rank - t) % W] tokens. Every rank goes through "
        "all steps, also one without tokens. A block without tokens has LSE -inf and weight 0, so "
        "the merge by LSEs takes it as it is; leaving it out is right too, and so is leaving out "
        "its hop.",
    ),
    checks=(
        Check("numbers", 4, results(ring.right)),
        Check("arguments", 1, inputs_kept, after="numbers"),
        Check("hops", 3, ragged.hops, after="numbers"),
    ),
    cases=(
        _case("1 rank, 5 tokens", "5", 66),
        _case("2 ranks, 4 and 3 tokens", "4 3", 67),
        _case("3 ranks, 2, 5 and 3 tokens", "2 5 3", 68, heads=6),
        _case("4 ranks, 3, 0, 6 and 1 tokens", "3 0 6 1", 69, heads=3, kv_heads=1),
        _case("5 ranks, 0, 0, 4, 2 and 0 tokens", "0 0 4 2 0", 70, batch=1),
    ),
    observe=ragged.observe,
    mistakes=MISTAKES,
    draw=messages.draw,
)
