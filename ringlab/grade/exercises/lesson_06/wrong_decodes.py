"""What mistaken decodes compute, so that their results can be told by the numbers."""

from __future__ import annotations

from ringlab.grade.case import Case
from ringlab.grade.exercises.lesson_03.wrong_rings import Combine
from ringlab.grade.exercises.lesson_06.shards import parts, whole
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain
from ringlab.grade.shows import Results


def combined(combine: Combine) -> Results:
    """What every rank returns if the parts of all ranks are combined like this."""

    def results(case: Case) -> tuple[Plain, ...]:
        return (combine(parts(case)).float(),) * case.world_size

    return results


def no_scale(case: Case) -> tuple[Plain, ...]:
    """Exact attention with scores that are not divided by the root of D."""
    q, k, v = whole(case)
    out = exact_attention(q.double() * q.shape[-1] ** 0.5, k, v).out
    return (out.float(),) * case.world_size
