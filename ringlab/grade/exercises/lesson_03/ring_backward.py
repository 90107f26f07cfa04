"""The ring, backward: K and V go round once more, and dK and dV come home."""

from __future__ import annotations

from ringlab.grade.exercise import Check, Exercise
from ringlab.grade.exercises.lesson_00 import messages
from ringlab.grade.exercises.lesson_03 import backward, ring
from ringlab.grade.exercises.lesson_03.gradient_mistakes import NUMBERS
from ringlab.grade.exercises.lesson_03.gradient_traffic import FAILED, TRAFFIC
from ringlab.grade.looks import inputs_kept

EXERCISE = Exercise(
    name="ring_backward",
    lesson="03",
    title="The ring, backward",
    minutes=45,
    difficulty=5,
    objective="write the backward of a ring, whose dK and dV come home from all ranks",
    signature="ring_backward(q, k, v, out, lse, dout)",
    hints=(
        "Work out first what one block gives, and check it with one rank. Then ask of each of dq, "
        "dk and dv: which ranks compute a share of it, and on which rank must the sum be in the "
        "end?",
        "One block: weights = exp(scores - lse), dV = weights.T @ dout, dS = weights * (dout @ V.T "
        "- sum of dout * out), dQ = dS @ K and dK = dS.T @ q, both by 1 / sqrt(D); then the sum "
        "over query heads that share a KV head. dQ stays and grows. K and V go round as in the "
        "forward, W - 1 hops; behind them goes a sum for dK and dV in float32, to which each rank "
        "adds its share of the block in hand *before* it passes it on, W hops: the last one home.",
    ),
    checks=(
        Check("dq", 3, backward.gradients("dq")),
        Check("dk and dv", 4, backward.gradients("dk", "dv")),
        Check("arguments", 1, inputs_kept, after="dk and dv"),
        Check("bytes", 2, backward.traffic, after="dk and dv"),
        Check("neighbours", 1, ring.to_the_next, after="dk and dv"),
        Check("memory", 1, backward.memory, after="dk and dv"),
    ),
    cases=backward.CASES,
    observe=backward.observe,
    mistakes=(*FAILED, *TRAFFIC, *NUMBERS),
    draw=messages.draw,
)
