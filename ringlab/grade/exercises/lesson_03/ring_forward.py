"""The ring, forward: right numbers, one block at a time, counted to the byte."""

from __future__ import annotations

from ringlab.grade.exercise import Check, Exercise
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.exercises.lesson_03.number_mistakes import NUMBERS
from ringlab.grade.exercises.lesson_03.ring_mistakes import FAILED, TRAFFIC
from ringlab.grade.looks import hops, inputs_kept, results

EXERCISE = Exercise(
    name="ring_forward",
    lesson="03",
    title="The ring, forward",
    minutes=30,
    difficulty=3,
    objective="write attention over a sequence on many ranks that holds three blocks at a time",
    signature="ring_forward(q, k, v)",
    hints=(
        "Keep three things apart: the block in hand, the partial result so far (out and LSE), and "
        "the buffer into which the next block arrives. What changes in a step, and what stays?",
        "Step by step: if this is not the last step, start one batch with a send of the block in "
        "hand to the next rank and a receive into a new buffer from the rank before; compute with "
        "the block in hand; merge by the LSEs; wait; take the new block into the hand. With "
        "grouped queries repeat each KV head in place. Work in float32, return the dtype of q.",
    ),
    checks=(
        Check("numbers", 4, results(ring.right)),
        Check("arguments", 1, inputs_kept, after="numbers"),
        Check("hops", 2, hops(ring.right_hops)),
        Check("neighbours", 1, ring.to_the_next, after="hops"),
        Check("memory", 2, ring.memory, after="hops"),
    ),
    cases=ring.CASES,
    observe=ring.observe,
    mistakes=(*FAILED, *TRAFFIC, *NUMBERS),
    draw=ring.draw,
)
