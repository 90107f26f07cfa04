"""Merging two partial results, whatever they are."""

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

Merge = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@lru_cache(maxsize=64)
def _inputs(case: Case) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two partial results; where one is of no key, its out is not to be read."""
    draw = torch.Generator().manual_seed(case.seed)
    outs = torch.randn(2, 2, 3, 6, 4, generator=draw)  # which, B, H, L, D
    lses = 3 * torch.randn(2, 2, 3, 6, generator=draw) + case.integer("shift", 0)
    lses[1] += case.integer("apart", 0)
    for which, rows in ((0, slice(0, 2)), (1, slice(2, 4))):
        if case.integer("empty", 0):
            lses[which][..., rows] = -torch.inf
            outs[which][..., rows, :] = torch.nan
    if case.integer("both", 0):
        lses[:, ..., 4] = -torch.inf
        outs[:, ..., 4, :] = 0.0
    return outs[0], lses[0], outs[1], lses[1]


def _right(case: Case) -> tuple[Plain, ...]:
    out_a, lse_a, out_b, lse_b = (x.double() for x in _inputs(case))
    top = torch.maximum(lse_a, lse_b)
    weights = [
        torch.where(lse.isneginf(), 0.0, (lse - top).exp()) for lse in (lse_a, lse_b)
    ]  # fmt: skip
    total = weights[0] + weights[1]
    terms = [
        torch.where(w[..., None] > 0, w[..., None] * out, 0.0)
        for w, out in zip(weights, (out_a, out_b), strict=True)
    ]
    out = torch.where(total[..., None] > 0, (terms[0] + terms[1]) / total[..., None], 0.0)
    lse = torch.where(total > 0, top + total.log(), -torch.inf)
    return ((out.float(), lse.float()),)


def _observe(answer: Any, case: Case) -> Observation:
    return alone(answer, *_inputs(case))


def _merges(wrong: Merge) -> Shows:
    return gives(lambda case: (wrong(*_inputs(case)),), _right)


def _plainly(wrong: Merge) -> Shows:
    """Shows in the cases in which every query has keys in both parts."""
    return where(lambda case, _: not {"empty", "both"} & set(case.options), _merges(wrong))


def _clean(out: Tensor, lse: Tensor) -> Tensor:
    return torch.where(lse.isneginf()[..., None], 0.0, out)


def _weighted(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor
              ) -> tuple[Tensor, Tensor]:  # fmt: skip
    lse = torch.logaddexp(lse_a, lse_b)
    return (lse_a - lse).exp()[..., None] * out_a + (lse_b - lse).exp()[..., None] * out_b, lse


def _mean(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    return (out_a + out_b) / 2, torch.logaddexp(lse_a, lse_b)


def _sum(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    return out_a + out_b, torch.logaddexp(lse_a, lse_b)


def _swapped(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor
             ) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _weighted(out_b, lse_a, out_a, lse_b)


def _no_maximum(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor
                ) -> tuple[Tensor, Tensor]:  # fmt: skip
    a, b = lse_a.exp(), lse_b.exp()
    out = (a[..., None] * out_a + b[..., None] * out_b) / (a + b)[..., None]
    return out, (a + b).log()


def _base_two(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor
              ) -> tuple[Tensor, Tensor]:  # fmt: skip
    lse = torch.logaddexp2(lse_a, lse_b)
    return (lse_a - lse).exp2()[..., None] * out_a + (lse_b - lse).exp2()[..., None] * out_b, lse


def _larger(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor
            ) -> tuple[Tensor, Tensor]:  # fmt: skip
    out, _ = _weighted(out_a, lse_a, out_b, lse_b)
    return out, torch.maximum(lse_a, lse_b)


def _both_empty(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor
                ) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _weighted(_clean(out_a, lse_a), lse_a, _clean(out_b, lse_b), lse_b)


def _case(title: str, seed: int, **options: int) -> Case:
    return Case(title, seed=seed, options=options)


EXERCISE = Exercise(
    name="total_merge",
    lesson="02",
    title="A merge for every input",
    minutes=20,
    difficulty=3,
    objective="merge partial results that were computed apart, also those of no key at all",
    signature="total_merge(out_a, lse_a, out_b, lse_b)",
    hints=(
        "Each part has a weight: its share of the sum of exponentials of both. Which numbers "
        "become infinite on the way, and which are no numbers?",
        "The weight of a part is exp(its LSE - LSE of both). Where an LSE is -inf, its out may be "
        "anything: choose with torch.where, since 0 times NaN is NaN. Where both are, the result "
        "is out 0 and LSE -inf.",
    ),
    checks=(
        Check("result", 5, results(_right)),
        Check("arguments", 1, inputs_kept, after="result"),
    ),
    cases=(
        _case("two parts", 1),
        _case("parts of very different weight", 2, apart=30),
        _case("LSEs of about 200", 3, shift=200),
        _case("parts of no key, with NaN beside them", 4, empty=1),
        _case("both parts of no key", 5, both=1),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "no_maximum",
            "Your exponentials overflow: exp(200) is inf in float32. Subtract before you "
            "exponentiate; only the difference of two LSEs matters.",
            _plainly(_no_maximum),
        ),
        Mistake(
            "multiplies_what_is_empty",
            "A part of no key has weight 0, and beside it may stand anything. You multiplied it: 0 "
            "times NaN is NaN. It must be ignored, not multiplied.",
            where(lambda case, _: "both" not in case.options, _merges(_weighted)),
        ),
        Mistake(
            "both_empty",
            "Where both parts are of no key, your result is NaN: there -inf - (-inf) is computed. "
            "Nothing merged with nothing is nothing: out 0, LSE -inf.",
            _merges(_both_empty),
        ),
        Mistake(
            "mean",
            "You took the mean of the two outs. A part over many keys with large scores weighs "
            "more; the LSEs say how much.",
            _plainly(_mean),
        ),
        Mistake(
            "sum",
            "You added the two outs. Each was divided by its own sum already; together they are "
            "about twice too large.",
            _plainly(_sum),
        ),
        Mistake(
            "weights_swapped",
            "Each part has the weight of the other: the part with the larger LSE must weigh more.",
            _plainly(_swapped),
        ),
        Mistake(
            "base_two",
            "You took powers of two. These LSEs are natural logarithms; some kernels return "
            "logarithms to the base two, and those are converted where they are made.",
            _plainly(_base_two),
        ),
        Mistake(
            "larger_lse",
            "Your out is right and your LSE is the larger of the two. The next merge would give "
            "this result too little weight: the LSE of both is log(exp a + exp b).",
            _plainly(_larger),
        ),
    ),
)
