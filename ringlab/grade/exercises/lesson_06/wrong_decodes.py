"""What mistaken decodes compute, so that their results can be told by the numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercises.lesson_06.shards import Part, parts, whole
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain
from ringlab.grade.shows import Results

Combine = Callable[[tuple[Part, ...]], Tensor]


def combined(combine: Combine) -> Results:
    """What every rank returns if the parts of all ranks are combined like this."""

    def results(case: Case) -> tuple[Plain, ...]:
        return (combine(parts(case)).float(),) * case.world_size

    return results


def added(found: tuple[Part, ...]) -> Tensor:
    """Softmax outputs added up as they are."""
    return _outs(found).sum(0)


def averaged(found: tuple[Part, ...]) -> Tensor:
    """Every rank given the same weight."""
    return _outs(found).mean(0)


def by_keys(found: tuple[Part, ...]) -> Tensor:
    """Every rank weighted by the number of its keys."""
    shares = torch.stack([torch.full_like(part.lse, part.keys) for part in found])
    return _weighted(found, shares)


def own_maxima(found: tuple[Part, ...]) -> Tensor:
    """Numerators and denominators added, each with the maximum of its own rank subtracted."""
    return _weighted(found, torch.stack([(part.lse - part.largest).exp() for part in found]))


def no_scale(case: Case) -> tuple[Plain, ...]:
    """Exact attention with scores that are not divided by the root of D."""
    q, k, v = whole(case)
    out = exact_attention(q.double() * q.shape[-1] ** 0.5, k, v).out
    return (out.float(),) * case.world_size


def _outs(found: tuple[Part, ...]) -> Tensor:
    return torch.stack([part.out for part in found])


def _weighted(found: tuple[Part, ...], weights: Tensor) -> Tensor:
    """The mean of the outs with weights [W, B, Hq, 1]."""
    shares = weights / weights.sum(0)
    return (shares[..., None] * _outs(found)).sum(0)
