"""Undivided sums of many ranks, put together into one result."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Shows
from ringlab.grade.looks import inputs_kept, results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives, where

Merged = tuple[Tensor, Tensor]
Merge = Callable[[Tensor, Tensor, Tensor], Merged]


@lru_cache(maxsize=64)
def _inputs(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    """Maxima and denominators [W, B, H], numerators [W, B, H, D] of scores that are drawn."""
    draw = torch.Generator().manual_seed(case.seed)
    ranks, keys = case.integer("ranks"), 5
    scores = 2 * torch.randn(ranks, 2, 3, keys, generator=draw) + case.integer("shift", 0)
    values = torch.randn(ranks, 2, 3, keys, 4, generator=draw)
    if case.integer("empty", 0):
        scores[1::2] = -torch.inf  # every other rank has no key
    if case.integer("nobody", 0):
        scores[:, 1] = -torch.inf  # the second sequence has no key anywhere
    largest = scores.amax(-1)
    weights = (scores - largest.clamp_min(-1e30)[..., None]).exp()
    return largest, weights.sum(-1), (weights[..., None, :] @ values).squeeze(-2)


def _observe(answer: Any, case: Case) -> Observation:
    return alone(answer, *_inputs(case))


def _right(case: Case) -> tuple[Plain, ...]:
    largest, totals, sums = (x.double() for x in _inputs(case))
    parts = torch.where(totals > 0, largest + totals.log(), -torch.inf)
    means = torch.where(totals[..., None] > 0, sums / totals[..., None], 0.0)
    shares = parts.softmax(0).nan_to_num(0.0)
    return (((shares[..., None] * means).sum(0).float(), parts.logsumexp(0).float()),)


def _merges(wrong: Merge) -> Shows:
    return gives(lambda case: (wrong(*_inputs(case)),), _right)


def _plainly(wrong: Merge) -> Shows:
    """Shows in the cases in which every rank has keys."""
    return where(lambda case, _: not {"empty", "nobody"} & set(case.options), _merges(wrong))


def _rescaled(largest: Tensor, totals: Tensor, sums: Tensor, sign: int = 1) -> Merged:
    top = largest.amax(0)
    factors = (sign * (largest - top)).exp()
    return _divided(top, (factors * totals).sum(0), (factors[..., None] * sums).sum(0))


def _divided(top: Tensor, total: Tensor, weighted: Tensor) -> Merged:
    return weighted / total[..., None], top + total.log()


def _as_they_are(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    return _divided(largest.amax(0), totals.sum(0), sums.sum(0))


def _upside_down(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    return _rescaled(largest, totals, sums, -1)


def _sums_alone(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    top = largest.amax(0)
    weighted = ((largest - top).exp()[..., None] * sums).sum(0)
    return _divided(top, totals.sum(0), weighted)


def _no_maximum(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    factors = largest.exp()
    total = (factors * totals).sum(0)
    return (factors[..., None] * sums).sum(0) / total[..., None], total.log()


def _mean(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    return (sums / totals[..., None]).mean(0), _rescaled(largest, totals, sums)[1]


def _sum(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    return (sums / totals[..., None]).sum(0), _rescaled(largest, totals, sums)[1]


def _not_divided(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    out, lse = _rescaled(largest, totals, sums)
    return out * (lse - largest.amax(0)).exp()[..., None], lse


def _maximum_forgotten(largest: Tensor, totals: Tensor, sums: Tensor) -> Merged:
    out, lse = _rescaled(largest, totals, sums)
    return out, lse - largest.amax(0)


def _case(title: str, ranks: int, seed: int, **options: int) -> Case:
    return Case(title, seed=seed, options={"ranks": ranks, **options})


EXERCISE = Exercise(
    name="merge_parts",
    lesson="06",
    title="Sums of many ranks",
    minutes=15,
    difficulty=2,
    objective="put the undivided sums of many ranks together, also of ranks without a key",
    signature="merge_parts(largest, totals, sums)",
    hints=(
        "Each rank subtracted its own maximum before it took exponentials. What must its two sums "
        "be multiplied by, so that all ranks have subtracted the same number?",
        "Take the maximum over the ranks, multiply totals and sums by exp(own maximum - that), "
        "add both up, and divide once. Where nobody has a key that difference is -inf - (-inf): "
        "subtract 0 there, and do not divide 0 by 0.",
    ),
    checks=(
        Check("result", 4, results(_right)),
        Check("arguments", 1, inputs_kept, after="result"),
    ),
    cases=(
        _case("1 rank", 1, 61),
        _case("3 ranks", 3, 62),
        _case("4 ranks, scores of about 200", 4, 63, shift=200),
        _case("5 ranks, two of them without a key", 5, 64, empty=1),
        _case("2 ranks, a sequence for which nobody has a key", 2, 65, nobody=1),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "not_rescaled",
            "You added sums as they are. Each rank subtracted its own maximum, so they are in "
            "different units: bring all of them to the maximum of all ranks first.",
            _plainly(_as_they_are),
        ),
        Mistake(
            "upside_down",
            "Your factors are turned round: a rank whose maximum lies below that of all ranks "
            "must count for less, so its factor is smaller than 1.",
            _plainly(_upside_down),
        ),
        Mistake(
            "denominators_not_rescaled",
            "The numerators are brought to the common maximum and the denominators are not. Both "
            "are sums of the same exponentials, and both need the factor.",
            _plainly(_sums_alone),
        ),
        Mistake(
            "no_maximum",
            "The result is right until the scores are large: exp(200) is infinite in float32. "
            "Subtract the largest maximum before you exponentiate.",
            _plainly(_no_maximum),
        ),
        Mistake(
            "mean_of_outs",
            "You divided on each rank and took the mean. Then every rank counts for the same, "
            "whether or not its keys fit the query. Add first, divide once at the end.",
            _plainly(_mean),
        ),
        Mistake(
            "sum_of_outs",
            "You divided on each rank and added the results up. The weights of each rank then add "
            "up to 1, and those of all ranks to W. Add first, divide once at the end.",
            _plainly(_sum),
        ),
        Mistake(
            "not_divided",
            "Your out is the numerator: divide it by the sum of all denominators.",
            _plainly(_not_divided),
        ),
        Mistake(
            "maximum_forgotten_in_lse",
            "Your out is right, and your LSE is too small by the maximum: the denominators were "
            "computed after it had been subtracted, so it must be added to their logarithm.",
            _plainly(_maximum_forgotten),
        ),
        Mistake(
            "nobody_has_a_key",
            "Where no rank has a key your result is not a number: -inf - (-inf), or 0 / 0. The "
            "result of nothing is out 0 and LSE -inf.",
            _merges(_rescaled),
        ),
    ),
)
