"""Decode on many ranks: results travel, keys and values stay where they are."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ringlab.draw import bytes_text
from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome, Shows
from ringlab.grade.exercises.lesson_03 import wrong_rings
from ringlab.grade.exercises.lesson_03.ring import lengths
from ringlab.grade.exercises.lesson_03.ring_mistakes import breaks_without_tokens
from ringlab.grade.exercises.lesson_06 import wrong_decodes as wrong
from ringlab.grade.exercises.lesson_06.shards import observe, result_bytes, right
from ringlab.grade.looks import inputs_kept, results
from ringlab.grade.numbers import close
from ringlab.grade.observation import Observation
from ringlab.grade.shows import gives, where

MOST_CALLS = 2


def _sent(case: Case, seen: Observation) -> int:
    return max(seen.timeline.bytes_sent(rank) for rank in range(case.world_size))


def _most(case: Case) -> int:
    """W - 1 results."""
    return (case.world_size - 1) * result_bytes(case)


def _calls(seen: Observation) -> int:
    ranks = range(seen.timeline.world_size)
    return max(seen.timeline.count("collective", rank) for rank in ranks)


def _messages(seen: Observation) -> int:
    return seen.timeline.count("send")


def _bytes(case: Case, seen: Observation) -> Outcome:
    most, sent = _most(case), _sent(case, seen)
    return Outcome(
        sent <= most,
        f"at most {bytes_text(most)} from each rank: a result to each other one",
        f"{bytes_text(sent)} from the rank that sent most",
    )


def _collectives(case: Case, seen: Observation) -> Outcome:
    calls, messages = _calls(seen), _messages(seen)
    return Outcome(
        calls <= MOST_CALLS and not messages,
        f"at most {MOST_CALLS} collectives on each rank, and no messages",
        f"{calls} collectives and {messages} messages in all",
    )


def _same_bits(case: Case, seen: Observation) -> Outcome:
    outs = [out for out in seen.results if isinstance(out, Tensor)]
    other = [rank for rank, out in enumerate(outs) if not torch.equal(out, outs[0])]
    return Outcome(
        not other,
        "the same bits on every rank",
        f"rank {other[0]} has other bits than rank 0" if other else "the same bits on every rank",
    )


def _right(case: Case, seen: Observation) -> bool:
    return seen.failure is None and close(seen.results, right(case))


def _if_right(way: Callable[[Case, Observation], bool]) -> Shows:
    """What shows in the traffic of an answer whose numbers are right.

    A run that ended because the ranks' lengths differ tells nothing.
    """

    def shows(case: Case, seen: Observation) -> bool | None:
        if seen.failure is not None:
            unequal = len(set(lengths(case))) > 1
            return None if unequal and seen.failure.kind != "NotImplementedError" else False
        return _right(case, seen) and way(case, seen)

    return shows


def _puts_together(combine: wrong_rings.Combine) -> Shows:
    """Shows where all ranks have keys: what none means differs from method to method."""
    way = gives(wrong.combined(combine), right)
    return where(lambda case, _: 0 not in lengths(case), way)


def _on_one_rank(case: Case, seen: Observation) -> bool | None:
    if seen.failure is not None or case.world_size == 1:
        return False
    good = [close(out, wanted) for out, wanted in zip(seen.results, right(case), strict=False)]
    return good[:1] == [True] and not any(good[1:])


def _overflows(case: Case, seen: Observation) -> bool | None:
    """No numbers, and only where scores are large."""
    outs = [out for out in seen.results if isinstance(out, Tensor)]
    return case.integer("large", 1) > 1 and any(not out.isfinite().all() for out in outs)


def _case(title: str, held: str, seed: int, **options: int) -> Case:
    return Case(title, len(held.split()), seed, {"lengths": held, **options})


EXERCISE = Exercise(
    name="split_k_decode",
    lesson="06",
    title="Decode by split-K",
    minutes=25,
    difficulty=3,
    objective="attend from a new token to a cache on many ranks by sending results alone",
    signature="split_k_decode(q, k, v)",
    hints=(
        "Each rank can attend to its own keys alone. What must it tell the others besides that "
        "result, so that all know for how much it counts?",
        "Two ways are right. Gather out and LSE, packed into one tensor of D + 1 numbers for each "
        "head, and weight by softmax of the LSEs over the ranks. Or all-reduce the maximum, and "
        "then numerator and denominator, packed, as sums. A rank without a key has LSE -inf and "
        "out 0, and takes part in every call.",
    ),
    checks=(
        Check("numbers", 4, results(right)),
        Check("arguments", 1, inputs_kept, after="numbers"),
        Check("bytes", 2, _bytes, after="numbers"),
        Check("collectives", 2, _collectives, after="numbers"),
        Check("same bits", 1, _same_bits, after="numbers"),
    ),
    cases=(
        _case("1 rank", "7", 71),
        _case("2 ranks, 16 keys each", "16 16", 72),
        _case("3 ranks, 12 keys each, large scores", "12 12 12", 73, large=60, heads=6),
        _case("4 ranks, 49 keys, one KV head", "13 12 12 12", 74, heads=3, kv_heads=1),
        _case("5 ranks, two of them without a key", "0 0 14 9 8", 75),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "result_on_one_rank",
            "Only rank 0 has the result. Every rank computes the next layer and the next token, "
            "so every rank needs it: reduce to all, or gather on all.",
            _on_one_rank,
        ),
        Mistake(
            "ring_of_kv",
            "The numbers are right, but keys and values travel from rank to rank, for every token "
            "that is written. Leave them where they are and send what each rank found.",
            _if_right(lambda _case, seen: _messages(seen) > 0),
        ),
        Mistake(
            "results_in_float64",
            "The results that travel take eight bytes a number. Few of them are added up, and "
            "float32 is enough for that: send four bytes a number.",
            _if_right(lambda case, seen: _most(case) < _sent(case, seen) <= 2 * _most(case)),
        ),
        Mistake(
            "gathers_the_kv",
            "The numbers are right where all ranks have as many keys, but keys and values are "
            "gathered: bytes that grow with the context, for every token, and every rank then "
            "reads all of it. Send results; their size is the same whatever the length.",
            _if_right(lambda case, seen: _sent(case, seen) > 2 * _most(case)),
        ),
        Mistake(
            "too_many_collectives",
            "The numbers are right, in more calls than needed. Each costs its latency, in every "
            "layer: pack what can travel together into one tensor.",
            _if_right(lambda _case, seen: _calls(seen) > MOST_CALLS),
        ),
        Mistake(
            "other_bits_on_other_ranks",
            "The ranks add the same results up in different orders, so their results differ in "
            "the last bits, and ranks might pick different tokens. Use one order: that of the "
            "ranks.",
            _if_right(lambda case, seen: not _same_bits(case, seen).passed),
        ),
        Mistake(
            "sum_of_outs",
            "You added up the softmax attention of each rank. The weights of each add up to 1, so "
            "the sum is W times too heavy.",
            _puts_together(wrong_rings.added),
        ),
        Mistake(
            "mean_of_outs",
            "You took the mean of the ranks' results. A rank counts for its share of the "
            "denominator, exp(its LSE), whether it is large or small.",
            _puts_together(wrong_rings.averaged),
        ),
        Mistake(
            "weights_by_keys",
            "You weighted each rank by the number of its keys. A rank whose keys fit the query "
            "counts for more than one with as many that do not: weights come from the LSEs.",
            _puts_together(wrong_rings.by_keys),
        ),
        Mistake(
            "maximum_not_reduced",
            "Numerators and denominators are added up although each rank subtracted its own "
            "maximum. They are in different units: all must subtract the same number.",
            _puts_together(wrong_rings.not_rescaled),
        ),
        Mistake(
            "no_scale",
            "The scores are not divided by the square root of D.",
            gives(wrong.no_scale, right),
        ),
        Mistake(
            "overflows",
            "With large scores the result is no number: exp(score) is infinite in float32 from 89 "
            "on. Subtract the maximum of all ranks, or use LSEs.",
            _overflows,
        ),
        Mistake(
            "rank_without_a_key",
            "A rank without a key breaks it: there is no maximum of nothing, and -inf - (-inf) is "
            "no number. Such a rank counts for nothing, and must take part all the same.",
            breaks_without_tokens,
        ),
    ),
)
