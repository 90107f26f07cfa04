"""Mistakes in what a ring computes, and how they show in the numbers."""

from __future__ import annotations

from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Mistake, Shows
from ringlab.grade.exercises.lesson_03 import wrong_rings as wrong
from ringlab.grade.exercises.lesson_03.ring import right
from ringlab.grade.numbers import close
from ringlab.grade.observation import Observation
from ringlab.grade.shows import Results, any_of, gives


def _numbers(*methods: Results) -> Shows:
    return any_of(*(gives(method, right) for method in methods))


def _tensors(seen: Observation) -> list[Tensor]:
    return [out for out in seen.results if isinstance(out, Tensor)]


def _not_finite(case: Case, seen: Observation) -> bool | None:
    """Not a number, and only where scores are large."""
    bad = any(not out.isfinite().all() for out in _tensors(seen))
    return bad and case.integer("large", 1) > 1


def rounded(right: Results) -> Shows:
    """A little wrong, and only in 16 bits."""

    def shows(case: Case, seen: Observation) -> bool | None:
        small = case.text("dtype", "float32") == "bfloat16"
        return small and seen.failure is None and close(seen.results, right(case), 0.1)

    return shows


def _other_dtype(case: Case, seen: Observation) -> bool | None:
    outs, wanted = _tensors(seen), case.text("dtype", "float32")
    return bool(outs) and any(str(out.dtype) != f"torch.{wanted}" for out in outs)


def _own_only(rank: int, _size: int) -> list[int]:
    return [rank]


def _neighbour_again(rank: int, size: int) -> list[int]:
    return [rank] + [(rank - 1) % size] * (size - 1)


def _last_missing(rank: int, size: int) -> list[int]:
    return [(rank - step) % size for step in range(max(1, size - 1))]


def _first_missing(rank: int, size: int) -> list[int]:
    return [(rank - step) % size for step in range(min(1, size - 1), size)]


NUMBERS = (
    Mistake(
        "added_without_weights",
        "Partial results are added up as they are. Each is an average over its own keys: two "
        "averages need weights, and those come from the LSEs.",
        _numbers(wrong.each_rank(wrong.added)),
    ),
    Mistake(
        "averaged",
        "Every block gets the same weight. A block with larger scores counts more: the weights "
        "come from the LSEs.",
        _numbers(wrong.each_rank(wrong.averaged)),
    ),
    Mistake(
        "weights_swapped",
        "The two weights of a merge have changed places: exp(lse1 - lse) belongs to out1.",
        _numbers(wrong.each_rank(wrong.swapped)),
    ),
    Mistake(
        "lse_not_merged",
        "The outputs are merged, but the LSE that you keep is that of one block. After a merge "
        "the LSE covers both parts: log(exp(lse1) + exp(lse2)).",
        _numbers(wrong.each_rank(wrong.stale_lse), wrong.each_rank(wrong.forgotten_lse)),
    ),
    Mistake(
        "not_rescaled",
        "Exponentials of different blocks are added although each block subtracted its own "
        "maximum. When the maximum changes, what was summed before must be rescaled by "
        "exp(old maximum - new maximum).",
        _numbers(wrong.each_rank(wrong.not_rescaled)),
    ),
    Mistake(
        "last_block_alone",
        "What you return is the result of the last block; the ones before are lost. Merge every "
        "block into what you have.",
        _numbers(wrong.each_rank(wrong.last_alone)),
    ),
    Mistake(
        "last_block_missing",
        "The last block that arrives is never computed with: W - 1 hops, but W steps.",
        _numbers(wrong.each_rank(wrong.merged, _last_missing)),
    ),
    Mistake(
        "own_block_missing",
        "A rank's own block is left out: step 0 comes before the first hop.",
        _numbers(wrong.each_rank(wrong.merged, _first_missing)),
    ),
    Mistake(
        "own_block_sent_again",
        "In every hop each rank sends its own block again. So you meet your neighbour's block over "
        "and over, and the others never: pass on what has arrived.",
        _numbers(wrong.each_rank(wrong.merged, _neighbour_again)),
    ),
    Mistake(
        "ignores_what_arrives",
        "Blocks travel, but each step computes with the rank's own K and V. Compute with the block "
        "in hand.",
        _numbers(wrong.each_rank(wrong.merged, _own_only)),
    ),
    Mistake(
        "scale_twice",
        "The scores are divided by the square root of D twice, so by D: the weights come out too "
        "even.",
        _numbers(wrong.scaled(1.0)),
    ),
    Mistake(
        "no_scale",
        "The scores are not divided by the square root of D.",
        _numbers(wrong.scaled(0.0)),
    ),
    Mistake(
        "kv_heads_in_wrong_order",
        "Query heads meet the wrong KV heads. With G query heads to a KV head, query head h uses "
        "KV head h // G: each KV head is repeated in place (repeat_interleave), not the row of "
        "them.",
        _numbers(wrong.tiled_heads),
    ),
    Mistake(
        "overflows",
        "With large scores the result is no number: exp(score) is infinite in float32 from 89 on. "
        "Subtract the maximum first, or work with the LSE alone (logsumexp, logaddexp).",
        _not_finite,
    ),
    Mistake(
        "other_dtype",
        "The result has another dtype than q. Compute in float32 or wider, and return it in the "
        "dtype of q.",
        _other_dtype,
    ),
    Mistake(
        "sixteen_bit_state",
        "Right in float32, and too coarse in bfloat16: the partial results are rounded to 16 bits "
        "in every merge. Keep outputs and LSE in float32, and round once, at the end.",
        rounded(right),
    ),
)
"""Mistakes that show in the result."""
