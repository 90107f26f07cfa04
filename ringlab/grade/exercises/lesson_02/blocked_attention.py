"""Attention block by block, in memory that does not grow with the number of keys."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Shows
from ringlab.grade.looks import inputs_kept, peak_memory, results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain
from ringlab.grade.shows import all_of, gives


@lru_cache(maxsize=64)
def _inputs(case: Case) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(case.seed)
    kind = getattr(torch, case.text("dtype", "float32"))
    queries, keys = case.integer("queries"), case.integer("keys")
    q, k, v = (
        torch.randn(2, 3, length, 8, generator=draw).to(kind) for length in (queries, keys, keys)
    )
    return q * case.integer("times", 1), k, v


def _observe(answer: Any, case: Case) -> Observation:
    return alone(answer, *_inputs(case), case.integer("block"))


def _right(case: Case) -> tuple[Plain, ...]:
    q, k, v = _inputs(case)
    return (exact_attention(q, k, v).out.to(q.dtype),)


def _scaled(scale: float) -> Shows:
    """The scores are multiplied by ``scale`` instead of ``1 / sqrt(D)``."""

    def wrong(case: Case) -> tuple[Plain, ...]:
        q, k, v = _inputs(case)
        return (exact_attention(q.double() * scale * q.shape[-1] ** 0.5, k, v).out.to(q.dtype),)

    return gives(wrong, _right)


def _rest_dropped(case: Case) -> tuple[Plain, ...]:
    q, k, v = _inputs(case)
    whole = k.shape[2] // case.integer("block") * case.integer("block")
    if not whole:
        return (torch.zeros_like(q),)
    return (exact_attention(q, k[:, :, :whole], v[:, :, :whole]).out.to(q.dtype),)


def _parts(case: Case) -> list[Tensor]:
    """The attention to each block alone, [blocks, B, H, Lq, D]."""
    q, k, v = _inputs(case)
    pieces = zip(*(x.split(case.integer("block"), dim=2) for x in (k, v)), strict=True)
    return [exact_attention(q, keys, values).out for keys, values in pieces]


def _mean(case: Case) -> tuple[Plain, ...]:
    return (torch.stack(_parts(case)).mean(0).to(_inputs(case)[0].dtype),)


def _sum(case: Case) -> tuple[Plain, ...]:
    return (torch.stack(_parts(case)).sum(0).to(_inputs(case)[0].dtype),)


def _overflows(case: Case, seen: Observation) -> bool | None:
    """Numbers that are infinite or none, where scores are large, and only there."""
    if seen.failure is not None or not isinstance(result := seen.results[0], Tensor):
        return False
    return not result.isfinite().all() if case.integer("times", 1) > 1 else None


def _table(case: Case) -> int:
    q, k, _ = _inputs(case)
    return 4 * q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2]


def _most(case: Case) -> int:
    """Half of the table of all scores in float32, or twelve times what a small case needs."""
    q = _inputs(case)[0]
    block = 4 * q[..., 0].numel() * case.integer("block")
    return max(_table(case) // 2, 12 * (block + 4 * q.numel()))


def _whole_table(case: Case, seen: Observation) -> bool | None:
    if seen.failure is not None or _most(case) >= _table(case):
        return None
    return max(seen.peaks) >= _table(case)


def _right_numbers(case: Case, seen: Observation) -> bool | None:
    return results(_right)(case, seen).passed if seen.failure is None else False


def _case(title: str, seed: int, **options: int | str) -> Case:
    return Case(title, seed=seed, options=options)


EXERCISE = Exercise(
    name="blocked_attention",
    lesson="02",
    title="Attention block by block",
    minutes=25,
    difficulty=3,
    objective="compute attention in memory that does not grow with the number of keys",
    signature="blocked_attention(q, k, v, block)",
    hints=(
        "A loop over blocks of keys and values, and a state that is the same size after every "
        "block. What happens to the last block if the length is no multiple?",
        "Start with m = -inf, sum = 0, acc = 0 in float32. For each block: scaled scores, the "
        "update of the last exercise. After the last block divide acc by the sum, once, and return "
        "it in the dtype of q. tensor.split(block, dim=2) gives a shorter last block by itself.",
    ),
    checks=(
        Check("numbers", 4, results(_right)),
        Check("arguments", 1, inputs_kept, after="numbers"),
        Check("memory", 3, peak_memory(_most), after="numbers"),
    ),
    cases=(
        _case("10 keys in blocks of 4", 1, queries=5, keys=10, block=4),
        _case("3 keys in a block of 16", 2, queries=4, keys=3, block=16),
        _case("large scores", 3, queries=5, keys=9, block=3, times=60),
        _case("bfloat16", 4, queries=6, keys=40, block=8, dtype="bfloat16"),
        _case("240 keys in blocks of 8", 5, queries=48, keys=240, block=8),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "whole_table",
            "The numbers are right, but there was a moment at which the scores of all keys were in "
            "memory. Then blocks save nothing: compute the scores of one block at a time.",
            all_of(_right_numbers, _whole_table),
        ),
        Mistake(
            "no_maximum",
            "With large scores your result is infinite or no number: exp overflows. Subtract the "
            "running maximum before you exponentiate.",
            _overflows,
        ),
        Mistake(
            "rest_dropped",
            "The keys after the last whole block are missing. The last block may be shorter than "
            "the others.",
            gives(_rest_dropped, _right),
        ),
        Mistake(
            "no_scale",
            "The scores are not scaled: they are divided by the square root of the head dimension.",
            _scaled(1.0),
        ),
        Mistake(
            "scale_twice",
            "The scores are scaled twice: they should be divided by the square root of the head "
            "dimension once.",
            _scaled(1 / 8),
        ),
        Mistake(
            "mean_of_blocks",
            "You averaged the results of the blocks. A block with large scores weighs more.",
            gives(_mean, _right),
        ),
        Mistake(
            "sum_of_blocks",
            "You added the results of the blocks. Each was already divided by its own sum.",
            gives(_sum, _right),
        ),
    ),
)
