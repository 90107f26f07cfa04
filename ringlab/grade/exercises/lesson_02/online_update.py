"""One block of scores into the running maximum, sum and weighted sum."""

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
from ringlab.grade.shows import gives

State = tuple[Tensor, Tensor, Tensor]
Update = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], State]


@lru_cache(maxsize=64)
def _inputs(case: Case) -> tuple[Tensor, ...]:
    """A state after the first blocks, the next block of scores, and its values."""
    seen, width = case.integer("seen"), case.integer("width")
    queries, dim = 5, 3
    draw = torch.Generator().manual_seed(case.seed)
    scores = 3 * torch.randn(2, queries, seen + width, generator=draw, dtype=torch.float64)
    scores[..., seen:] += case.integer("shift", 0)
    values = torch.randn(2, seen + width, dim, generator=draw, dtype=torch.float64)
    empty = case.integer("empty", 0)
    scores[:, :empty, :seen] = -torch.inf
    scores[:, : case.integer("still_empty", 0)] = -torch.inf
    kind = getattr(torch, case.text("values", "float32"))
    m, total, acc = _exact(scores[..., :seen], values[:, :seen])
    return m, total, acc, scores[..., seen:].float(), values[:, seen:].to(kind)


def _exact(scores: Tensor, values: Tensor) -> State:
    """Maximum, sum and weighted sum over all keys at once, in float64."""
    scores, values = scores.double(), values.double()
    if not scores.shape[-1]:
        m = torch.full(scores.shape[:-1], -torch.inf, dtype=torch.float64)
    else:
        m = scores.amax(-1)
    weights = torch.where(scores.isneginf(), 0.0, (scores - m[..., None]).exp())
    return m.float(), weights.sum(-1).float(), (weights @ values).float()


def _right(case: Case) -> tuple[Plain, ...]:
    m, total, acc, scores, values = _inputs(case)
    new, added, part = (x.double() for x in _exact(scores, values))
    top = torch.maximum(m.double(), new)
    old = torch.where(m.isneginf(), 0.0, (m.double() - top).exp())
    fresh = torch.where(new.isneginf(), 0.0, (new - top).exp())
    state = (
        top, old * total + fresh * added, old[..., None] * acc + fresh[..., None] * part
    )  # fmt: skip
    return (tuple(x.float() for x in state),)


def _observe(answer: Any, case: Case) -> Observation:
    return alone(answer, *_inputs(case))


def _updates(wrong: Update) -> Shows:
    return gives(lambda case: (wrong(*_inputs(case)),), _right)


def _with(
    *, of_sum: bool = True, of_acc: bool = True, sign: float = 1.0, old_max: bool = True
) -> Update:
    """The update without some of its parts."""

    def update(m: Tensor, total: Tensor, acc: Tensor, scores: Tensor, values: Tensor) -> State:
        top = torch.maximum(m, scores.amax(-1)) if old_max else scores.amax(-1)
        weights = torch.where(scores.isneginf(), 0.0, (scores - top[..., None]).exp())
        factor = torch.where(m.isneginf(), 0.0, (sign * (m - top)).exp())
        kept_sum = factor * total if of_sum else total
        kept_acc = factor[..., None] * acc if of_acc else acc
        return top, kept_sum + weights.sum(-1), kept_acc + weights @ values.float()

    return update


def _not_a_number(m: Tensor, total: Tensor, acc: Tensor, scores: Tensor, values: Tensor) -> State:
    top = torch.maximum(m, scores.amax(-1))
    weights, factor = (scores - top[..., None]).exp(), (m - top).exp()
    part = weights @ values.float()
    return top, factor * total + weights.sum(-1), factor[..., None] * acc + part


def _divided(m: Tensor, total: Tensor, acc: Tensor, scores: Tensor, values: Tensor) -> State:
    top, new, part = _with()(m, total, acc, scores, values)
    return top, new, torch.where(new[..., None] > 0, part / new[..., None], 0.0)


def _sixteen_bits(m: Tensor, total: Tensor, acc: Tensor, scores: Tensor, values: Tensor) -> State:
    top, new, part = _with()(m, total, acc, scores, values)
    return top, new, part.to(values.dtype)


def _case(title: str, seed: int, **options: int | str) -> Case:
    return Case(title, seed=seed, options=options)


EXERCISE = Exercise(
    name="online_update",
    lesson="02",
    title="One block more",
    minutes=20,
    difficulty=2,
    objective="take a block of scores into a running maximum, sum and weighted sum",
    signature="online_update(m, total, acc, scores, values)",
    hints=(
        "The old sums were taken relative to the old maximum. What must they be multiplied by, so "
        "that old and new terms are relative to one maximum?",
        "New maximum first. Then one factor, exp(old maximum - new maximum), for total and "
        "acc, and the weights exp(scores - new maximum) of the block. Where there is no key yet, "
        "both maxima are -inf and their difference is no number: such a row stays 0.",
    ),
    checks=(
        Check("state", 5, results(_right)),
        Check("arguments", 1, inputs_kept, after="state"),
    ),
    cases=(
        _case("the first block", 1, seen=0, width=4),
        _case("a second block with larger scores", 2, seen=4, width=7, shift=9),
        _case("a second block with smaller scores", 3, seen=6, width=3, shift=-9),
        _case(
            "rows without keys so far, and two of them still",
            4,
            seen=4,
            width=5,
            empty=4,
            still_empty=2,
        ),
        _case("values in bfloat16", 5, seen=3, width=6, values="bfloat16", shift=2),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "not_a_number",
            "Rows that have no key yet become NaN: there -inf - (-inf) is computed. A row without "
            "keys has sum 0 and weighted sum 0, whatever its maximum.",
            _updates(_not_a_number),
        ),
        Mistake(
            "sixteen_bit_state",
            "Your weighted sum has the dtype of the values. It is added to many times, so it is "
            "kept in float32, whatever the inputs are.",
            _updates(_sixteen_bits),
        ),
        Mistake(
            "nothing_rescaled",
            "You added old and new terms that are relative to different maxima. When the maximum "
            "grows, the old sum and the old weighted sum both shrink by the same factor.",
            _updates(_with(of_sum=False, of_acc=False)),
        ),
        Mistake(
            "acc_not_rescaled",
            "The sum is right and the weighted sum is not: acc must shrink by the same factor "
            "as the sum when the maximum grows.",
            _updates(_with(of_acc=False)),
        ),
        Mistake(
            "sum_not_rescaled",
            "The weighted sum is right and the sum is not: it must shrink by the same factor as "
            "acc when the maximum grows.",
            _updates(_with(of_sum=False)),
        ),
        Mistake(
            "factor_upside_down",
            "Your factor is the wrong way up: it grows when the maximum grows. Old terms were "
            "exp(s - old); exp(old - new) turns them into exp(s - new).",
            _updates(_with(sign=-1.0)),
        ),
        Mistake(
            "maximum_of_the_block",
            "Your new maximum is that of the block alone. If the block's scores are smaller than "
            "earlier ones, the maximum must stay, or the old sums overflow some day.",
            _updates(_with(old_max=False)),
        ),
        Mistake(
            "divided_too_soon",
            "You divided acc by the sum in the update. Then the next update multiplies what is "
            "divided already. Divide once, after the last block.",
            _updates(_divided),
        ),
    ),
)
